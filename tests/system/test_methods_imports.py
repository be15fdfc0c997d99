import subprocess
import sys


def test_listing_methods_does_not_import_torch() -> None:
    code = "import sys, comes.methods; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
