"""Seconds of ``comes fit`` alone and beside busy processes, of this checkout and of another one.

    git worktree add ../before 275fc0cc
    python benchmarks/busy_fit.py ../before

fits the training part of the tickets of the demo by the defaults, in turns: alone, and while every
core also runs another process; once more with OMP_NUM_THREADS=1, which shows how much slower busy
cores are by themselves. ``benchmarks/results/busy_fit.json`` has the medians, and the CPU seconds
beside busy processes over those alone. Nothing else should run on the machine.
"""

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from measuring import significant, write
from threads import busy_processes

from comes.workflows.demo import write_tickets

HERE = Path(__file__).parent.parent
FIT = ("-m", "comes", "fit", "tickets.csv", "--labels", "is_*", "-o", "model")
ROWS = 2400


def measure(checkout: Path, folder: str, n_busy: int, *, one_thread: bool) -> tuple[float, float]:
    """Return the CPU seconds and the seconds of a fit."""
    environment = os.environ | {
        "PYTHONPATH": str(checkout / "src"),
        "PYTHONPYCACHEPREFIX": str(Path(folder) / "bytecode"),
    }
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    environment.pop("OMP_NUM_THREADS", None)
    if one_thread:
        environment["OMP_NUM_THREADS"] = "1"
    with busy_processes(n_busy):  # whose seconds count when they have ended
        before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        subprocess.run(
            [sys.executable, *FIT], cwd=folder, env=environment, check=True, capture_output=True
        )
        after, ended = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return cpu, ended - started


def main() -> None:
    """Measure and write medians."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("other", nargs="?", type=Path, help="another checkout")
    parser.add_argument("--turns", type=int, default=3)
    arguments = parser.parse_args()
    checkouts = {"this": HERE}
    if arguments.other is not None:
        checkouts["before"] = arguments.other.resolve()
    cases = [(title, one) for title in checkouts for one in (False, True)]
    found: dict[tuple[str, bool, int], list[tuple[float, float]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        write_tickets(Path(folder) / "tickets.csv", ROWS)
        for turn in range(arguments.turns + 1):  # the first compiles bytecode
            for title, one_thread in cases:
                for n_busy in (0, os.cpu_count() or 1) if turn else (0,):
                    times = measure(checkouts[title], folder, n_busy, one_thread=one_thread)
                    if turn:
                        found.setdefault((title, one_thread, n_busy), []).append(times)
                    print(turn, title, one_thread, n_busy, times, flush=True)
    rows = []
    for title, one_thread in cases:
        alone, busy = (found[title, one_thread, n] for n in (0, os.cpu_count() or 1))
        cpu, cpu_busy = (statistics.median(cpu for cpu, _ in times) for times in (alone, busy))
        wall, wall_busy = (statistics.median(wall for _, wall in times) for times in (alone, busy))
        row = {"CPU": cpu, "CPU, busy": cpu_busy, "busy over alone": cpu_busy / cpu}
        row |= {"seconds": wall, "seconds, busy": wall_busy}
        threads = "one" if one_thread else "as they are"
        rows.append(
            {"checkout": title, "threads": threads} | {k: significant(v) for k, v in row.items()}
        )
        print(rows[-1])
    write("busy_fit", {"turns": arguments.turns, "fits": rows})


if __name__ == "__main__":
    main()
