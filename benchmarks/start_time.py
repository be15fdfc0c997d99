"""How long it takes to start: ``comes --help`` and ``import comes``, beside a bare Python.

    python benchmarks/start_time.py

writes ``benchmarks/results/start_time.json``; medians of whole processes, measured in turns.
"""

import functools
import statistics
import subprocess
import sys
from pathlib import Path

from measuring import seconds_in_turns, significant, write

REPEATS = 11
COMMANDS = {
    "python -c pass": [sys.executable, "-c", "pass"],
    "import comes": [sys.executable, "-c", "import comes"],
    "comes --help": [str(Path(sys.executable).parent / "comes"), "--help"],
    "import comes.risks": [sys.executable, "-c", "import comes.risks"],
    "import torch": [sys.executable, "-c", "import torch"],
}


def main() -> None:
    """Measure and write medians."""
    actions = {
        name: functools.partial(subprocess.run, command, check=True, capture_output=True)
        for name, command in COMMANDS.items()
    }
    seconds = seconds_in_turns(actions, REPEATS)
    medians = {name: significant(statistics.median(values)) for name, values in seconds.items()}
    print(medians)
    write("start_time", {"repeats": REPEATS, "seconds": medians})


if __name__ == "__main__":
    main()
