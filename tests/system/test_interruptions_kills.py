"""Kills and SIGTERM at random moments: inputs untouched, outputs whole or absent, no orphans.

The commands and moments are those of ``python benchmarks/interruptions.py``, which fills disks too.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
INTERRUPT = """
import random, sys
from pathlib import Path
import interruptions

home, command = Path(sys.argv[1]), sys.argv[2]
interruptions.PATIENCE = 300.0
interruptions.can_mount = lambda: False
random.seed(0)
inputs = interruptions.make_inputs(home)
seconds = interruptions.measure(command, home, inputs)
faults = []
for kind in ("kill", "term"):
    for number, moment in enumerate((random.uniform(0, seconds), 0.9 * seconds, None)):
        place = interruptions.prepare(home, inputs)
        outcome = interruptions.try_once(command, kind, moment, place, bool(number % 2))
        interruptions.remove(place)
        wrong = outcome.describe("kill")  # a temporary file may stay; the benchmark counts them
        if outcome.traceback and kind == "term":
            wrong = "traceback"
        if wrong is not None:
            faults.append(f"{kind} at {moment}: {wrong}: {outcome.message}")
print(faults)
"""


@pytest.mark.parametrize("command", ["fit", "predict", "convert", "bench"])
def test_an_interrupted_command_loses_nothing(tmp_path: Path, command: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPT, str(tmp_path), command],
        cwd=BENCHMARKS,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "[]", done.stdout


def test_what_was_measured_lost_nothing() -> None:
    stored = BENCHMARKS / "results" / "interruptions.json"
    rows = json.loads(stored.read_text(encoding="utf-8"))["rows"]
    assert {row["interruption"] for row in rows} == {"kill", "term", "disk"}
    for row in rows:
        assert row["moments"] == row["inputs_untouched"] == row["outputs_whole_or_absent"] > 0
        assert row["with_orphans"] == row["tracebacks"] == 0
        assert row["interruption"] == "kill" or row["with_temporary_files"] == 0
