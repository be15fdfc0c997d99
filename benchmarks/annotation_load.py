"""How long the annotation page takes for an answer: with one person, and with fifty at once.

    python benchmarks/annotation_load.py

writes ``benchmarks/results/annotation_load.json``. The server runs in its own process, as ``comes
annotate serve``; simulated annotators run in this one. An answer takes from sending it to the
reply, which comes when the answer is on disk. Quick people pause for a quarter of a second on
average between answers; without a pause the server is saturated. One and fifty take turns; the
ratio of one turn is the fair number. PostgreSQL is measured where ``COMES_POSTGRESQL`` names an
empty database.
"""

import os
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from measuring import significant, write
from robots import RobotReport, run_robots

from comes.annotate import create_project

REPEATS = 5
MANY = 50
ITEMS, CLASSES = 6000, 10  # all pairs are asked
PAUSES = {"quick_people": 0.25, "no_pause": 0.0}  # seconds
ANSWERS = {"quick_people": {1: 100, MANY: 40}, "no_pause": {1: 500, MANY: 40}}  # of each robot


def measure(address: str, robots: int, answers: int, pause: float) -> dict[str, float]:
    """Return quantiles of the milliseconds of an answer, and answers per second."""
    reports: list[RobotReport] = []

    def work(number: int) -> None:
        time.sleep(pause * number / robots)  # people do not answer in step
        name = f"robot {number} of {robots}"
        reports.extend(
            run_robots(address, 1, lambda *_: "no", pause=pause, most=answers, name=name)
        )

    threads = [threading.Thread(target=work, args=(number,)) for number in range(robots)]
    started = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds = time.perf_counter() - started
    if any(report.error or report.refused for report in reports):
        raise RuntimeError(f"a robot could not answer: {reports}")
    each = np.concatenate([report.seconds for report in reports])
    if len(each) != robots * answers:
        raise RuntimeError("there were too few cards")
    return {
        "p50": 1000 * float(np.quantile(each, 0.5)),
        "p95": 1000 * float(np.quantile(each, 0.95)),
        "per_second": len(each) / seconds,
    }


def in_turns(address: str, situation: str) -> dict[str, Any]:
    """Return medians over turns of one robot and of many, and of the ratios within a turn."""
    turns: dict[int, list[dict[str, float]]] = {1: [], MANY: []}
    for _ in range(REPEATS):
        for robots, answers in ANSWERS[situation].items():
            turns[robots].append(measure(address, robots, answers, PAUSES[situation]))
    pairs = list(zip(turns[1], turns[MANY], strict=True))
    row: dict[str, Any] = {}
    for robots, name in ((1, "one"), (MANY, "fifty")):
        for key, unit in (("p50", "_milliseconds"), ("p95", "_milliseconds"), ("per_second", "")):
            value = statistics.median(turn[key] for turn in turns[robots])
            row[f"{name}_{key}{unit}"] = significant(value)
    for key in ("p95", "p50"):
        ratios = [many["p95"] / one[key] for one, many in pairs]
        row[f"fifty_p95_over_one_{key}"] = significant(statistics.median(ratios))
        row[f"fifty_p95_over_one_{key}_turns"] = [significant(ratio) for ratio in ratios]
    return row


@contextmanager
def running_server(folder: Path) -> Iterator[str]:
    """Give the address of ``comes annotate serve``."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "comes", "annotate", "serve", str(folder), "--port", str(port)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as server:
        try:
            yield f"http://127.0.0.1:{port}"  # robots wait until it answers
        finally:
            server.kill()


def load(database: str | None) -> dict[str, Any]:
    """Return both situations on one database."""
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        rows = "".join(f"{k},text {k}\n" for k in range(ITEMS))
        (home / "items.csv").write_text(f"item,text\n{rows}")
        (home / "classes.txt").write_text("".join(f"class {k}\n" for k in range(CLASSES)))
        sources = home / "items.csv", home / "classes.txt"
        project = create_project(home / "project", *sources, rate=1, database=database)
        project.engine.dispose()
        with running_server(home / "project") as address:
            measure(address, 2, 20, 0.0)  # the first answers are slower
            return {situation: in_turns(address, situation) for situation in PAUSES}


def main() -> None:
    """Measure, and write medians."""
    others = round(os.getloadavg()[0], 1)  # programs that compete with server and robots
    result: dict[str, Any] = {"repeats": REPEATS, "cards": ITEMS * CLASSES, "load_before": others}
    result["sqlite"] = load(None)
    print(result["sqlite"], flush=True)
    if database := os.environ.get("COMES_POSTGRESQL"):
        result["postgresql"] = load(database)
        print(result["postgresql"])
    write("annotation_load", result)


if __name__ == "__main__":
    main()
