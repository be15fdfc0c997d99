"""How a large project feels, before and after: 200 000 texts, 20 classes, 300 000 answers.

    python benchmarks/annotation_scale.py
    python benchmarks/annotation_scale.py --before ../another-checkout
    python benchmarks/annotation_scale.py --quick  # a hundredth of it, to see that it runs

The first two write ``benchmarks/results/annotation_scale.json``. *Before* is another checkout, or
the commit `BEFORE`, whose source is taken from git into a temporary folder; it is run by its own
processes. *After* is this tree. They take turns. Measured are the CPU seconds of ``init`` and
``export`` (with the start of Python); the milliseconds of the lead's page, opened by one lead while
one person answers; and the milliseconds of an answer of five people, while the lead's page is
refreshed every ten seconds, as the page does by itself, and while it is closed.
"""

import argparse
import io
import json
import os
import resource
import socket
import statistics
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple
from urllib.request import urlopen

import numpy as np
from measuring import significant, write
from robots import run_robots

BEFORE = "2aed30e3"
ROOT = Path(__file__).parent.parent
N_CLASSES, N_PEOPLE = 20, 20
RATE, OVERLAP = 0.1, 0.05
BETWEEN = 2.5  # seconds, after which no page is shown again as it was
PEOPLE, PAUSE = 5, 0.25  # who answer, and seconds in between
EVERY = 10.0  # seconds between two refreshes of an open page


class Size(NamedTuple):
    """How much is measured."""

    items: int
    answers: int
    repeats: int
    pages: int  # of the lead, in each tree
    per_turn: int  # answers of each person in a turn


FULL = Size(200_000, 300_000, 3, 20, 100)
QUICK = Size(2000, 3000, 1, 3, 10)


def main() -> None:
    """Measure, and write medians."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--before", type=Path, help=f"another checkout; by default {BEFORE}")
    parser.add_argument("--quick", action="store_true", help="small, and nothing is written")
    given = parser.parse_args()
    size = QUICK if given.quick else FULL
    result: dict[str, Any] = {"before": str(given.before or BEFORE), "classes": N_CLASSES}
    result |= size._asdict() | {"load_before": round(os.getloadavg()[0], 1)}
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        before = given.before.resolve() / "src" if given.before else take_before(home / "tree")
        trees = {"before": before, "after": ROOT / "src"}
        write_sources(home, size.items)
        result["init_cpu_seconds"] = measure_commands(home, trees, init_command, size.repeats)
        for title, tree in trees.items():
            run_part(tree, "fill", str(home / f"{title}-0"), str(size.answers))
        result["export_cpu_seconds"] = measure_commands(home, trees, export_command, size.repeats)
        print(result, flush=True)
        result["lead_milliseconds"] = measure_pages(home, trees, size.pages)
        print(result["lead_milliseconds"], flush=True)
        result["answer_milliseconds"] = measure_answers(home, trees, size)
        print(result["answer_milliseconds"], flush=True)
    if not given.quick:
        write("annotation_scale", result)


def take_before(folder: Path) -> Path:
    """Put the source of the earlier commit into a folder; return where packages are."""
    command = ["git", "-C", str(ROOT), "archive", BEFORE, "src"]
    packed = subprocess.run(command, capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        archive.extractall(folder, filter="data")
    return folder / "src"


def write_sources(home: Path, n_items: int) -> None:
    """Write the texts and the classes."""
    rng = np.random.default_rng(0)
    words = np.array(
        [
            "rain",
            "sun",
            "goal",
            "match",
            "vote",
            "law",
            "court",
            "ship",
            "sea",
            "bird",
            "horse",
            "road",
            "car",
        ]
    )
    rows = words[rng.integers(len(words), size=(n_items, 12))]
    texts = (f"text-{k:06d},{' '.join(row)}\n" for k, row in enumerate(rows))
    (home / "texts.csv").write_text("item,text\n" + "".join(texts))
    (home / "classes.txt").write_text("".join(f"class {k}\n" for k in range(N_CLASSES)))


def init_command(home: Path, title: str, turn: int) -> list[str]:
    """Return the command that makes a project."""
    sources = ["--items", str(home / "texts.csv"), "--classes", str(home / "classes.txt")]
    drawing = ["--rate", str(RATE), "--overlap", str(OVERLAP)]
    return ["init", str(home / f"{title}-{turn}"), *sources, *drawing]


def export_command(home: Path, title: str, turn: int) -> list[str]:
    """Return the command that exports the answers."""
    return ["export", str(home / f"{title}-0"), "-o", str(home / f"{title}-{turn}.csv")]


def measure_commands(
    home: Path, trees: dict[str, Path], command: Any, repeats: int
) -> dict[str, Any]:
    """Return the CPU seconds of a command in both trees, in turns."""
    seconds: dict[str, list[float]] = {title: [] for title in trees}
    for turn in range(repeats):
        for title, tree in trees.items():
            start = resource.getrusage(resource.RUSAGE_CHILDREN)
            words = [sys.executable, "-m", "comes", "annotate", *command(home, title, turn)]
            subprocess.run(words, env=environment(tree), check=True, stdout=subprocess.DEVNULL)
            end = resource.getrusage(resource.RUSAGE_CHILDREN)
            seconds[title].append(end.ru_utime + end.ru_stime - start.ru_utime - start.ru_stime)
    return compare(seconds)


def compare(values: dict[str, list[float]]) -> dict[str, Any]:
    """Return medians, and the median of the ratios within a turn."""
    row: dict[str, Any] = {
        title: significant(statistics.median(each)) for title, each in values.items()
    }
    pairs = zip(values["after"], values["before"], strict=True)
    row["after_over_before"] = significant(statistics.median(a / b for a, b in pairs))
    return row


def environment(tree: Path) -> dict[str, str]:
    """Return the environment of a process that runs a tree."""
    return {**os.environ, "PYTHONPATH": str(tree), "OMP_NUM_THREADS": "1"}


def run_part(tree: Path, *words: str) -> str:
    """Run a part of this file in a tree; return what it prints."""
    command = [sys.executable, __file__, *words]
    done = subprocess.run(command, env=environment(tree), check=True, stdout=subprocess.PIPE)
    return done.stdout.decode()


@contextmanager
def serving(home: Path, title: str, tree: Path) -> Iterator[str]:
    """Give the address of ``comes annotate serve``, once it answers and has its first page."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = ["serve", str(home / f"{title}-0"), "--port", str(port)]
    command = [sys.executable, "-m", "comes", "annotate", *words]
    with subprocess.Popen(command, env=environment(tree), stdout=subprocess.DEVNULL) as server:
        address = f"http://127.0.0.1:{port}"
        try:
            for _ in range(600):
                try:
                    urlopen(f"{address}/join", timeout=60).read()
                    break
                except OSError:
                    time.sleep(0.1)
            open_page(address)
            yield address
        finally:
            server.kill()


def open_page(address: str) -> float:
    """Return the milliseconds of the lead's page."""
    started = time.perf_counter()
    urlopen(f"{address}/lead", timeout=120).read()
    return 1000 * (time.perf_counter() - started)


def measure_pages(home: Path, trees: dict[str, Path], pages: int) -> dict[str, Any]:
    """Return quantiles of the lead's page in both trees, in turns, while one person answers."""
    each: dict[str, list[float]] = {title: [] for title in trees}
    with ExitStack() as stack:
        addresses = serve_all(stack, home, trees)
        for title, tree in trees.items():
            stack.enter_context(answering(tree, addresses[title]))
        for _ in range(pages):
            for title, address in addresses.items():
                each[title].append(open_page(address))
                time.sleep(BETWEEN / len(trees))
    row: dict[str, Any] = {}
    for name, share in (("p50", 0.5), ("p95", 0.95)):
        for title in trees:
            row[f"{title}_{name}"] = significant(float(np.quantile(each[title], share)))
        ratio = row[f"after_{name}"] / row[f"before_{name}"]
        row[f"after_over_before_{name}"] = significant(ratio)
    return row


def serve_all(stack: ExitStack, home: Path, trees: dict[str, Path]) -> dict[str, str]:
    """Serve both trees at the same time; return their addresses."""
    return {title: stack.enter_context(serving(home, title, tree)) for title, tree in trees.items()}


@contextmanager
def answering(tree: Path, address: str) -> Iterator[None]:
    """Let one person answer."""
    command = [sys.executable, __file__, "answer", address, "1", "1000000", "reader"]
    with subprocess.Popen(command, env=environment(tree), stdout=subprocess.DEVNULL) as robot:
        try:
            yield
        finally:
            robot.kill()


def measure_answers(home: Path, trees: dict[str, Path], size: Size) -> dict[str, Any]:
    """Return the p95 of answers in both trees, in turns, with the lead's page closed and open."""
    row: dict[str, Any] = {}
    with ExitStack() as stack:
        addresses = serve_all(stack, home, trees)
        for title, tree in trees.items():
            run_part(tree, "answer", addresses[title], str(PEOPLE), "10", "warm")
        for state in ("closed", "open"):
            p95s: dict[str, list[float]] = {title: [] for title in trees}
            for turn in range(size.repeats):
                for title, tree in trees.items():
                    words = ("answer", addresses[title], str(PEOPLE), str(size.per_turn))
                    with refreshing(addresses[title]) if state == "open" else nullcontext():
                        said = run_part(tree, *words, f"{state} {turn}")
                    p95s[title].append(1000 * float(np.quantile(json.loads(said), 0.95)))
            for title, values in p95s.items():
                row[f"{title}_{state}_p95"] = significant(statistics.median(values))
                row[f"{title}_{state}_p95_turns"] = [significant(value) for value in values]
            row[f"after_over_before_{state}_p95"] = compare(p95s)["after_over_before"]
    return row


@contextmanager
def refreshing(address: str) -> Iterator[None]:
    """Keep the lead's page open: it is fetched again and again."""
    ended = threading.Event()

    def refresh() -> None:
        while not ended.is_set():
            open_page(address)
            ended.wait(EVERY)

    thread = threading.Thread(target=refresh)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


# Parts that run in a tree of their own


def fill(folder: str, n_answers: str) -> None:
    """Give a project its answers, through the tables of its database."""
    from sqlalchemy import MetaData, bindparam, insert, select, update

    from comes.annotate import open_project

    project, rng, tables = open_project(folder), np.random.default_rng(1), MetaData()
    tables.reflect(project.engine)
    answers, cards = tables.tables["answers"], tables.tables["cards"]
    query = select(cards.c.id, cards.c.turn).order_by(cards.c.position).limit(int(n_answers))
    with project.reading() as connection:
        asked = [tuple(row) for row in connection.execute(query)]
    words = rng.choice(["no", "maybe", "yes", "skip"], len(asked), p=[0.78, 0.12, 0.09, 0.01])
    seconds = rng.gamma(2, 0.8, len(asked))
    # Second opinions are those of the last person, so that nobody is asked twice.
    who = np.where([turn for _, turn in asked], N_PEOPLE, rng.integers(N_PEOPLE, size=len(asked)))
    started = time.time() - len(asked)
    rows = [
        {
            "card_id": card,
            "annotator": f"person {who[k]}",
            "tab": "tab-of-people",
            "key": f"key-{k}",
            "answer": str(words[k]),
            "seconds": float(seconds[k]),
            "answered_at": started + k,
        }
        for k, (card, _) in enumerate(asked)
    ]
    done = update(cards).where(cards.c.id == bindparam("card"))
    done = done.values(is_done=True, tab="tab-of-people", annotator=bindparam("who"))
    of_cards = [{"card": card, "who": f"person {who[k]}"} for k, (card, _) in enumerate(asked)]
    with project.writing() as connection:
        connection.execute(insert(answers), rows)
        connection.execute(done, of_cards)
    project.engine.dispose()


def answer(address: str, people: str, most: str, name: str) -> None:
    """Let people answer; print the seconds of each answer."""
    reports = run_robots(
        address, int(people), lambda *_: "no", pause=PAUSE, most=int(most), name=name
    )
    if any(report.error for report in reports):
        raise RuntimeError(f"a robot could not answer: {reports}")
    print(json.dumps([second for report in reports for second in report.seconds]))


if __name__ == "__main__":
    if sys.argv[1:2] == ["fill"]:
        fill(*sys.argv[2:])
    elif sys.argv[1:2] == ["answer"]:
        answer(*sys.argv[2:])
    else:
        main()
