"""What several test files share."""

import os
from pathlib import Path

import pytest

# Small tensors gain nothing from threads, and on a busy machine threads wait for each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")  # read when torch is imported, here and in children


@pytest.fixture
def pml_data() -> Path:
    """The folder of real PML files; the test is skipped where it is absent."""
    folder = Path(os.environ.get("COMES_DATA", "")) / "pml"
    if "COMES_DATA" not in os.environ or not folder.is_dir():
        pytest.skip("COMES_DATA does not name a folder with pml/")
    return folder
