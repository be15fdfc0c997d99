"""What is lost when servers of the annotation page are killed while people answer.

    python benchmarks/annotation_kills.py
    python benchmarks/annotation_kills.py --kills 3 --robots 10 --items 60  # a quick look

The first writes ``benchmarks/results/annotation_kills.json``. Fifty simulated annotators answer all
cards of a project, as browsers do: each sends an answer until there is a reply. Meanwhile ``comes
annotate serve`` gets SIGKILL at a hundred random moments, and is started again each time: one
server on SQLite, and two servers on one PostgreSQL, of which either is killed, where
``COMES_POSTGRESQL`` names an empty database. Then what the annotators heard is compared with what
is stored.
"""

import argparse
import http.client
import multiprocessing
import os
import random
import socket
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from robots import RobotReport, run_robots
from sqlalchemy import select

from comes.annotate import Project, create_project
from comes.annotate.schema import answers, cards

ROBOTS, KILLS, ITEMS, CLASSES = 50, 100, 2500, 10  # all pairs are asked
PAUSE = 0.2  # seconds between the answers of an annotator, on average
WAITS = (0.02, 0.4)  # seconds between the first reply of a server and the next kill
STARTING = 60.0  # seconds that a server may take

Kill = Callable[[], None]
Start = Callable[[Path, int], Kill]

# Starting Python takes a second; a fork of one that has imported everything does not.
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["comes.annotate.web.server", "comes.cli"])


def list_arguments(folder: Path, port: int) -> list[str]:
    """Return the arguments of ``comes`` that serve a project."""
    return ["annotate", "serve", str(folder), "--port", str(port)]


def run_command(arguments: list[str]) -> None:
    """Do what ``comes`` does with arguments."""
    from comes.cli import main

    sys.stdout = open(os.devnull, "w")  # noqa: SIM115, the server says its address each time
    sys.argv = ["comes", *arguments]
    main()


def start_fork(folder: Path, port: int) -> Kill:
    """Start ``comes annotate serve`` in a fork; return what ends it as kill -9 does."""
    process = FORKS.Process(target=run_command, args=(list_arguments(folder, port),))
    process.start()

    def kill() -> None:
        if not process.is_alive():
            raise RuntimeError("the server ended by itself")
        process.kill()
        process.join()
        process.close()

    return kill


def wait_for_reply(port: int) -> None:
    """Wait until a server answers."""
    until = time.monotonic() + STARTING
    while True:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=STARTING)
        try:
            connection.request("GET", "/join")
            if connection.getresponse().status != 200:
                raise RuntimeError("the server refuses")
            return
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.005)
        finally:
            connection.close()


def find_port() -> int:
    """Return a free port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        number: int = free.getsockname()[1]
        return number


def say(item: str, label: str) -> str:
    """Return what annotators say about an item and a class, both named by their numbers."""
    return ("no", "yes", "maybe", "skip")[(int(item) + int(label)) % 4]


def make_project(home: Path, n_items: int, database: str | None) -> Project:
    """Make a project whose items and classes are named by their numbers."""
    rows = "".join(f"{k},text {k}\n" for k in range(n_items))
    (home / "items.csv").write_text(f"item,text\n{rows}")
    (home / "classes.txt").write_text("".join(f"{k}\n" for k in range(CLASSES)))
    sources = home / "items.csv", home / "classes.txt"
    return create_project(home / "project", *sources, rate=1, database=database)


def kill_while_robots_answer(
    project: Project,
    *,
    robots: int,
    kills: int,
    pause: float = 0.02,
    servers: int = 1,
    start: Start = start_fork,
) -> tuple[list[RobotReport], int]:
    """Return what the robots did, and how many kills came while they were at work."""
    rng, ports = random.Random(0), [find_port() for _ in range(servers)]
    reports: list[RobotReport] = []
    kill_server = [start(project.folder, port) for port in ports]
    for port in ports:
        wait_for_reply(port)

    def work(number: int) -> None:
        address, count = f"http://127.0.0.1:{ports[number]}", robots // servers
        name = f"robot of server {number}:"
        reports.extend(run_robots(address, count, say, pause=pause, name=name))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(servers)]
    for thread in threads:
        thread.start()
    during = 0
    for _ in range(kills):
        time.sleep(rng.uniform(*WAITS))
        number = rng.randrange(servers)
        during += any(thread.is_alive() for thread in threads)
        kill_server[number]()
        kill_server[number] = start(project.folder, ports[number])
        wait_for_reply(ports[number])
    for thread in threads:
        thread.join()
    for kill in kill_server:
        kill()
    return reports, during


def compare(project: Project, reports: list[RobotReport]) -> dict[str, Any]:
    """Return how what is stored differs from what the annotators heard and said."""
    heard = [one for report in reports for one in report.acknowledged]
    with project.reading() as connection:
        rows = connection.execute(select(answers)).all()
        asked = connection.execute(select(cards)).all()
    stored = [(row.card_id, row.key, row.answer) for row in rows if row.undone_at is None]
    said = {card.id: say(str(card.item_id - 1), str(card.class_id - 1)) for card in asked}
    return {
        "cards": len(asked),
        "open": sum(not card.is_done for card in asked),
        "acknowledged": len(heard),
        "stored": len(stored),
        "lost": len(set(heard) - set(stored)),
        "never_acknowledged": len(set(stored) - set(heard)),
        "doubled_cards": sum(n > 1 for n in Counter(card for card, _, _ in stored).values()),
        "doubled_keys": sum(n > 1 for n in Counter(row.key for row in rows).values()),
        "changed": sum(said[card] != answer for card, _, answer in stored),
        "refused": sum(len(report.refused) for report in reports),
        "gave_up": sum(report.error is not None for report in reports),
    }


def measure(database: str | None, servers: int, n_items: int, robots: int, kills: int) -> Any:
    """Return what kills do, and say in one line what is lost, doubled or changed."""
    with tempfile.TemporaryDirectory() as name:
        project = make_project(Path(name), n_items, database)
        started = time.perf_counter()
        reports, during = kill_while_robots_answer(
            project, robots=robots, kills=kills, pause=PAUSE, servers=servers
        )
        seconds = round(time.perf_counter() - started)
        row = {"servers": servers, "robots": robots, "kills": kills, "kills_at_work": during}
        row |= compare(project, reports) | {"seconds": seconds}
        project.engine.dispose()
    doubled = row["doubled_cards"] + row["doubled_keys"]
    print(f"{row['kills_at_work']} kills while {robots} robots answered {row['cards']} cards:")
    print(f"lost {row['lost']}, doubled {doubled}, changed {row['changed']}; {row}", flush=True)
    return row


def main() -> None:
    """Measure, and write counts; a quick look writes nothing."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kills", type=int, default=KILLS)
    parser.add_argument("--robots", type=int, default=ROBOTS)
    parser.add_argument("--items", type=int, default=ITEMS)
    given = parser.parse_args()
    size = given.items, given.robots, given.kills
    result = {"sqlite": measure(None, 1, *size)}
    if database := os.environ.get("COMES_POSTGRESQL"):
        result["postgresql"] = measure(database, 2, *size)
    if size == (ITEMS, ROBOTS, KILLS):
        from measuring import write

        write("annotation_kills", result)


if __name__ == "__main__":
    main()
