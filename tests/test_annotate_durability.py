"""An answer that was acknowledged is stored, once, whenever the server is killed."""

import http.client
import multiprocessing
import random
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from sqlalchemy import select

from comes.annotate import Project, RobotReport, create_project, run_robots
from comes.annotate.schema import answers, cards
from databases import PostgreSQL

ROBOTS = 10
STARTING = 60.0  # seconds
WAITS = (0.02, 0.15)  # seconds between the first reply of a server and its end

Kill = Callable[[], None]
Start = Callable[[Path, int], Kill]

# Starting Python takes a second; a fork of one that has imported everything does not.
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["pytest", "comes.annotate", "comes.cli", "databases"])


def run_command(arguments: list[str]) -> None:
    from comes.cli import main

    sys.argv = ["comes", *arguments]
    main()


def command(folder: Path, port: int) -> list[str]:
    return ["annotate", "serve", str(folder), "--port", str(port)]


def start_fork(folder: Path, port: int) -> Kill:
    """Start ``comes annotate serve`` in a fork; return what ends it as kill -9 does."""
    process = FORKS.Process(target=run_command, args=(command(folder, port),))
    process.start()

    def kill() -> None:
        assert process.is_alive()
        process.kill()
        process.join()
        process.close()

    return kill


def start_python(folder: Path, port: int) -> Kill:
    """Start ``python -m comes annotate serve``; return what ends it as kill -9 does."""
    process = subprocess.Popen(
        [sys.executable, "-m", "comes", *command(folder, port)], stdout=subprocess.DEVNULL
    )

    def kill() -> None:
        assert process.poll() is None
        process.kill()
        process.wait()

    return kill


def wait_for_reply(port: int) -> None:
    until = time.monotonic() + STARTING
    while True:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=STARTING)
        try:
            connection.request("GET", "/join")
            assert connection.getresponse().status == 200
            return
        except OSError:
            assert time.monotonic() < until, "the server did not start"
            time.sleep(0.005)
        finally:
            connection.close()


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        number: int = free.getsockname()[1]
        return number


def what_a_robot_says(item: str, label: str) -> str:
    return ("no", "maybe", "skip")[(int(item) + int(label)) % 3]


def project_of(home: Path, n_items: int, database: str | None) -> Project:
    rows = "".join(f"{k},text {k}\n" for k in range(n_items))
    (home / "items.csv").write_text(f"item,text\n{rows}")
    (home / "classes.txt").write_text("".join(f"{k}\n" for k in range(10)))
    sources = home / "items.csv", home / "classes.txt"
    return create_project(home / "project", *sources, rate=1, database=database)


def kill_while_robots_answer(
    project: Project, start: Start, n_kills: int, pause: float
) -> tuple[list[RobotReport], int]:
    """Return what the robots did, and how many kills came while they were at work."""
    rng, port = random.Random(0), free_port()
    reports: list[RobotReport] = []
    kill = start(project.folder, port)
    wait_for_reply(port)

    def work() -> None:
        address = f"http://127.0.0.1:{port}"
        reports.extend(run_robots(address, ROBOTS, what_a_robot_says, pause=pause))

    robots = threading.Thread(target=work)
    robots.start()
    during = 0
    for _ in range(n_kills):
        time.sleep(rng.uniform(*WAITS))
        during += robots.is_alive()
        kill()
        kill = start(project.folder, port)
        wait_for_reply(port)
    robots.join()
    kill()
    return reports, during


def check(project: Project, reports: list[RobotReport]) -> None:
    """All that was acknowledged is there exactly once, as it was said, and all is done."""
    assert [report.error for report in reports if report.error] == []
    assert [status for report in reports for status in report.refused] == []
    acknowledged = [one for report in reports for one in report.acknowledged]
    with project.reading() as connection:
        stored = connection.execute(select(answers)).all()
        asked = connection.execute(select(cards)).all()
    assert all(card.is_done for card in asked)
    # Nothing is there twice, and nothing that nobody heard of: a robot asks until it is answered.
    assert max(Counter(row.key for row in stored).values()) == 1
    assert max(Counter(row.card_id for row in stored).values()) == 1
    assert sorted((row.card_id, row.key, row.answer) for row in stored) == sorted(acknowledged)
    assert [row.undone_at for row in stored if row.undone_at] == []
    said = {
        card.id: what_a_robot_says(str(card.item_id - 1), str(card.class_id - 1)) for card in asked
    }
    assert {row.card_id: row.answer for row in stored} == said


def test_no_answer_is_lost_or_doubled_when_the_server_is_killed_fifty_times(
    tmp_path: Path,
) -> None:
    project = project_of(tmp_path, 300, None)
    reports, during = kill_while_robots_answer(project, start_fork, 50, pause=0.02)
    check(project, reports)
    assert during == 50  # else there was too little to do
    project.engine.dispose()


def test_nor_in_a_database_of_its_own(tmp_path: Path, postgresql: PostgreSQL) -> None:
    project = project_of(tmp_path, 100, postgresql.new_database())
    reports, during = kill_while_robots_answer(project, start_fork, 10, pause=0.02)
    check(project, reports)
    assert during == 10
    project.engine.dispose()


def test_nor_with_the_command_that_people_type(tmp_path: Path) -> None:
    project = project_of(tmp_path, 50, None)
    reports, during = kill_while_robots_answer(project, start_python, 1, pause=0.02)
    check(project, reports)
    assert during == 1
    project.engine.dispose()
