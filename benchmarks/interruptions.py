"""A kill, SIGTERM and a full disk at random moments of fit, predict, convert and bench.

    python benchmarks/interruptions.py --moments 5

takes 5 moments of every command for every kind of interruption, and writes
``benchmarks/results/interruptions.json``: how often the inputs were untouched, the outputs whole or
absent, a traceback was printed, temporary files stayed behind, and processes were left after ten
seconds. Commands are forked from a process that has imported everything. A third of the moments
lies anywhere in a run, a third in its last fifth, and a third right after the first temporary file
appears. Every other run finds an older output in its place, which must be the old or the new one
afterwards. A full disk needs root on Linux, for a tmpfs of its own.
"""

import argparse
import hashlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from measuring import write

from comes import load_model
from comes.cli import main as main_of_comes
from comes.datasets import make_scenes, open_dataset
from comes.workflows.data import convert_dataset
from comes.workflows.fit import fit_model

KINDS = ("kill", "term", "disk")
DISK = 24  # megabytes
PATIENCE = 10.0  # seconds for processes to end
EPOCHS = 40
BENCH = """
name = "small"
label_seeds = 4
settings = { epochs = 30, device = "cpu" }
data = [{ name = "scenes", rows = 300, case = "b" }]
methods = [{ method = "bce" }, { method = "comes-hl" }]
"""
COMMANDS = {
    "fit": f"fit in/data.csv --method bce --epochs {EPOCHS} -o out/model",
    "predict": "predict in/data.csv --model in/model -o out/predicted.csv",
    "convert": "datasets convert in/data.csv -o out/made.parquet",
    "bench": "bench in/small.toml -o out/runs --workers 2",
}
OUTPUTS = {"fit": "model", "predict": "predicted.csv", "convert": "made.parquet", "bench": "runs"}


@dataclass(frozen=True)
class Outcome:
    """What one interruption did."""

    inputs_untouched: bool
    outputs_sound: bool  # whole, or absent
    kept: bool  # an output is there
    traceback: bool
    leftovers: int  # temporary files
    orphans: int  # processes after ten seconds
    ended_by_itself: bool
    message: str

    def describe(self, kind: str) -> str | None:
        """Return what is wrong, None if nothing is."""
        faults = {
            "inputs changed": not self.inputs_untouched,
            "half an output": not self.outputs_sound,
            "traceback": self.traceback and kind != "kill",
            "temporary files": bool(self.leftovers) and kind != "kill",
            "orphans": bool(self.orphans),
        }
        return "; ".join(name for name, found in faults.items() if found) or None


def make_inputs(home: Path) -> Path:
    """Write the data, the model and the config that commands read."""
    folder = home / "inputs"
    folder.mkdir()
    scenes = convert_dataset(make_scenes(n=300), folder / "data.csv", simulate="b", rate=0.5)
    settings = {"method": "bce", "epochs": 2, "class_prior": [0.2] * 10}
    fit_model(scenes, settings, output=folder / "model")
    (folder / "small.toml").write_text(BENCH)
    return folder


@dataclass
class Running:
    """A command in a process of its own, forked from this one, which has imported everything.

    So the moments lie in what a command does, not in the seconds before it starts.
    """

    pid: int
    errors: Path
    code: int | None = None

    def poll(self) -> int | None:
        """Return how the process ended, None if it runs."""
        if self.code is None:
            done, status = os.waitpid(self.pid, os.WNOHANG)
            self.code = os.waitstatus_to_exitcode(status) if done else None
        return self.code

    def wait(self, seconds: float = 600) -> str:
        """Wait for the end, and return what was printed to standard error."""
        until = time.monotonic() + seconds
        while self.poll() is None:
            if time.monotonic() > until:
                raise TimeoutError(f"a command did not end within {seconds} seconds")
            time.sleep(0.01)
        return self.errors.read_text(errors="replace")


def start(command: str, place: Path) -> Running:
    """Start a command in a session of its own, so that its processes can be found."""
    errors = place.with_name(f"{place.name}.errors")
    process = os.fork()
    if process:
        return Running(process, errors)
    os.setsid()
    os.chdir(place)
    for stream, path in ((1, os.devnull), (2, str(errors))):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), stream)
    sys.argv = ["comes", *COMMANDS[command].split()]
    code = 1
    try:
        main_of_comes()
    except SystemExit as end:
        code = int(end.code or 0)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def interrupt(process: Running, kind: str, place: Path) -> None:
    """Kill, ask to end, or fill the disk."""
    if kind == "disk":
        with (place / "filler").open("wb", buffering=0) as file:
            for size in (1 << 16, 1 << 12, 1):
                try:
                    while file.write(b"\0" * size):
                        pass
                except OSError:
                    continue
    elif process.poll() is None:
        os.kill(process.pid, signal.SIGKILL if kind == "kill" else signal.SIGTERM)


def wait_for_moment(process: Running, place: Path, moment: float | None) -> None:
    """Wait some seconds, or until something is being written."""
    until = time.monotonic() + (120 if moment is None else moment)
    while time.monotonic() < until and process.poll() is None:
        if moment is None and any(p.name.startswith(".") for p in (place / "out").rglob(".*")):
            time.sleep(random.uniform(0, 0.02))
            return
        time.sleep(0.001 if moment is None else min(0.05, until - time.monotonic() + 1e-3))


def count_session(session: int) -> int:
    """Return how many processes of a session run."""
    found = 0
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            state, _, _, own = (entry / "stat").read_text().rpartition(")")[2].split()[:4]
        except (OSError, ValueError):
            continue
        found += int(own) == session and state != "Z"
    return found


def hash_files(folder: Path) -> str:
    """Return a checksum of all files of a folder and their names."""
    digest = hashlib.sha256()
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        digest.update(str(path.relative_to(folder)).encode() + path.read_bytes())
    return digest.hexdigest()


def is_sound(command: str, place: Path, old: bool) -> bool:
    """Return whether what a command wrote is whole; absent is sound where nothing was before."""
    output = place / "out" / OUTPUTS[command]
    partial = output.with_name("model.partial")
    if command == "fit" and partial.exists() and not load_model(partial).history_.interrupted:
        return False
    if not output.exists():
        return not old
    if command == "fit":
        return len(load_model(output).history_.risk) in (EPOCHS, 2)
    if command == "predict":
        return len(pd.read_csv(output)) in (300, 1)
    if command == "convert":
        return len(open_dataset(output)) in (300, 60)
    for result in output.rglob("result.json"):
        json.loads(result.read_text())
    page = output / "report" / "index.html"
    return not (output / "report").exists() or "</html>" in page.read_text()


def put_old(command: str, place: Path) -> None:
    """Put an older output where the command will write."""
    output = place / "out" / OUTPUTS[command]
    if command == "fit":
        shutil.copytree(place / "in" / "model", output)
    elif command == "predict":
        pd.DataFrame({"predicted": ["old"]}).to_csv(output, index=False)
    elif command == "convert":
        convert_dataset(make_scenes(n=60), output, simulate="b", rate=0.5)


def try_once(command: str, kind: str, moment: float | None, place: Path, old: bool) -> Outcome:
    """Run a command, interrupt it at a moment, and look at what is left."""
    if old:
        put_old(command, place)
    before = hash_files(place / "in")
    process = start(command, place)
    wait_for_moment(process, place, moment)
    ended = process.poll() is not None
    interrupt(process, kind, place)
    errors = process.wait()
    until = time.monotonic() + PATIENCE
    while count_session(process.pid) and time.monotonic() < until:
        time.sleep(0.1)
    orphans = count_session(process.pid)
    (place / "filler").unlink(missing_ok=True)
    try:
        sound = is_sound(command, place, old and command != "bench")
    except Exception as error:
        sound, errors = False, f"{errors}\n{error}"
    saved = re.search(r"saved as (\S+): move", errors)  # a model that was kept elsewhere
    if saved is not None:
        sound = sound and len(load_model(saved[1]).history_.risk) == EPOCHS
        shutil.rmtree(Path(saved[1]).parent)
    return Outcome(
        inputs_untouched=hash_files(place / "in") == before,
        outputs_sound=sound,
        kept=(place / "out" / OUTPUTS[command]).exists() or saved is not None,
        traceback="Traceback" in errors,
        leftovers=sum(1 for _ in (place / "out").rglob(".*")),
        orphans=orphans,
        ended_by_itself=ended,
        message=errors.strip()[-2000:],
    )


def measure(command: str, home: Path, inputs: Path) -> float:
    """Return the seconds of an undisturbed run."""
    place = prepare(home, inputs)
    started = time.monotonic()
    process = start(command, place)
    errors = process.wait()
    if process.code:
        raise RuntimeError(f"{command} failed: {errors}")
    seconds = time.monotonic() - started
    remove(place)
    return seconds


def prepare(home: Path, inputs: Path) -> Path:
    """Make a small disk, where that is allowed, with the inputs and a folder for outputs."""
    place = Path(tempfile.mkdtemp(dir=home))
    if can_mount():
        options = ["-t", "tmpfs", "-o", f"size={DISK}m", "comes", str(place)]
        subprocess.run(["mount", *options], check=True)
    shutil.copytree(inputs, place / "in")
    (place / "out").mkdir()
    return place


def remove(place: Path) -> None:
    """Remove a disk with all that is on it."""
    if can_mount():
        subprocess.run(["umount", "-l", str(place)], check=True)
    shutil.rmtree(place, ignore_errors=True)
    place.with_name(f"{place.name}.errors").unlink(missing_ok=True)


def can_mount() -> bool:
    """Return whether a disk of its own can be made for a run."""
    return sys.platform.startswith("linux") and os.geteuid() == 0


def main() -> None:
    """Interrupt every command at random moments, print what is wrong, and write the counts."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--moments", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    random.seed(options.seed)
    home = Path(tempfile.mkdtemp(prefix="comes-interruptions-"))
    inputs = make_inputs(home)
    rows: list[dict[str, Any]] = []
    for command in COMMANDS:
        seconds = measure(command, home, inputs)
        for kind in KINDS if can_mount() else KINDS[:2]:
            counts: Counter[str] = Counter()
            for number in range(options.moments):
                drawn = (
                    random.uniform(0, 1.02 * seconds),
                    random.uniform(0.8 * seconds, 1.02 * seconds),
                    None,
                )
                place = prepare(home, inputs)
                outcome = try_once(command, kind, drawn[number % 3], place, bool(number % 2))
                remove(place)
                wrong = outcome.describe(kind)
                counts.update(
                    moments=1,
                    inputs_untouched=outcome.inputs_untouched,
                    outputs_whole_or_absent=outcome.outputs_sound,
                    output_there=outcome.kept,
                    ended_before=outcome.ended_by_itself,
                    tracebacks=outcome.traceback,
                    with_temporary_files=outcome.leftovers > 0,
                    with_orphans=outcome.orphans > 0,
                )
                if wrong is not None:
                    print(f"{command}, {kind}, {drawn[number % 3]}: {wrong}\n{outcome.message}")
            rows.append({"command": command, "interruption": kind, **counts})
            print(rows[-1], flush=True)
            total = {name: sum(row[name] for row in rows) for name in counts}
            write("interruptions", {"rows": rows, "all": total})  # as far as it is known
    shutil.rmtree(home, ignore_errors=True)


if __name__ == "__main__":
    main()
