"""How many CPU seconds it takes to start, of this checkout and of another one, in turns.

    git worktree add ../before 275fc0cc
    python benchmarks/start_time.py ../before

starts processes that do their work and end, with one thread and with bytecode that was compiled
before, as pip does. The least of all turns is what a process takes that nobody disturbs.
``benchmarks/results/start_time.json`` has it for both checkouts.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from measuring import significant, write

from comes.workflows.demo import write_tickets

HERE = Path(__file__).parent.parent
TURNS = 7
LABELS = ("--labels", "is_*")
COMMANDS = {
    "python -c pass": ("-c", "pass"),
    "import torch": ("-c", "import torch"),
    "import torch, sklearn.linear_model": ("-c", "import torch, sklearn.linear_model"),
    "comes --help": ("-m", "comes", "--help"),
    "from comes import Answers": ("-c", "from comes import Answers"),
    "from comes import CandidateClassifier": ("-c", "from comes import CandidateClassifier"),
    "comes split": ("-m", "comes", "split", "tickets.csv", *LABELS, "-o", "parts"),
    "comes fit, imports": ("-c", "import comes.cli, comes.workflows.fit"),
    "comes predict, imports": ("-c", "import comes.cli, comes.workflows.predict"),
}


def cpu_seconds(command: tuple[str, ...], checkout: Path, folder: str) -> float:
    """Return the CPU seconds of a process of Python."""
    environment = os.environ | {
        "PYTHONPATH": str(checkout / "src"),
        "OMP_NUM_THREADS": "1",
    }
    environment.setdefault("PYTHONPYCACHEPREFIX", str(Path(folder) / "bytecode"))
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run = [sys.executable, "-W", "ignore", *command]
    subprocess.run(run, cwd=folder, env=environment, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Measure and write the least seconds."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("other", nargs="?", type=Path, help="another checkout")
    parser.add_argument("--turns", type=int, default=TURNS)
    arguments = parser.parse_args()
    checkouts = {"seconds": HERE}
    if arguments.other is not None:
        checkouts["seconds before"] = arguments.other.resolve()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        write_tickets(Path(folder) / "tickets.csv")
        for name, command in COMMANDS.items():
            found: dict[str, list[float]] = {title: [] for title in checkouts}
            for _ in range(arguments.turns + 1):  # the first compiles
                for title, checkout in checkouts.items():
                    found[title].append(cpu_seconds(command, checkout, folder))
            rows.append({"what": name} | {t: significant(min(s[1:])) for t, s in found.items()})
            print(rows[-1], flush=True)
    write("start_time", {"turns": arguments.turns, "seconds": rows})


if __name__ == "__main__":
    main()
