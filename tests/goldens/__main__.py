"""Write goldens again, and print what moved and by how much.

    python -m goldens fixed|stored|default [NAME ...]     in the folder tests

Without names, all of a set.
"""

import sys
import tempfile
from pathlib import Path

import torch

from goldens import cases, files

torch.set_num_threads(1)
SETS = {"fixed": cases.FIXED, "stored": cases.STORED, "default": cases.DEFAULT}
if len(sys.argv) < 2 or sys.argv[1] not in SETS:
    raise SystemExit(f"name a set of goldens: {', '.join(SETS)}")
group, names = sys.argv[1], sys.argv[2:] or list(SETS[sys.argv[1]])
for name in names:
    with tempfile.TemporaryDirectory() as folder:
        print(files.write(group, name, SETS[group][name](Path(folder))), flush=True)
