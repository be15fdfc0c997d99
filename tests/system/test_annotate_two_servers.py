"""Two servers on one PostgreSQL: no card is leased twice, and every answer is there."""

import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from robots import RobotReport, run_robots
from sqlalchemy import select

from comes.annotate import create_project
from comes.annotate.schema import answers, cards
from databases import PostgreSQL

ROBOTS, ITEMS = 5, 100  # at each server; two classes
OVERLAP = 0.5  # half of the questions are asked twice, the others once


@contextmanager
def running_server(folder: Path) -> Iterator[str]:
    """Give the address of ``comes annotate serve`` in a process of its own."""
    command = [sys.executable, "-m", "comes", "annotate", "serve", str(folder), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            yield server.stdout.readline().split()[-1].rstrip("/")  # it listens
        finally:
            server.kill()


@pytest.mark.needs("postgresql")
def test_no_card_is_leased_twice_and_no_answer_is_lost(
    tmp_path: Path, postgresql: PostgreSQL
) -> None:
    rows = "".join(f"{k},text {k}\n" for k in range(ITEMS))
    (tmp_path / "items.csv").write_text(f"item,text\n{rows}")
    (tmp_path / "classes.txt").write_text("sky\nsea\n")
    project = create_project(
        tmp_path / "project",
        tmp_path / "items.csv",
        tmp_path / "classes.txt",
        rate=1,
        overlap=OVERLAP,
        database=postgresql.new_database(),
    )
    reports: list[RobotReport] = []

    def work(address: str, name: str) -> None:
        reports.extend(run_robots(address, ROBOTS, lambda *_: "no", name=name))

    with ExitStack() as stack:
        addresses = [stack.enter_context(running_server(project.folder)) for _ in range(2)]
        threads = [
            threading.Thread(target=work, args=(address, name))
            for address, name in zip(addresses, ("left", "right"), strict=True)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        # A robot stops when it finds no card; one that comes later may answer what was left.
        work(addresses[0], "late")
    assert {report.error for report in reports} == {None}
    assert not any(report.refused for report in reports)  # nobody had another's card
    given = Counter(card for report in reports for card, _, _ in report.acknowledged)
    with project.reading() as connection:
        stored = connection.execute(select(answers)).all()
        done = connection.execute(select(cards.c.id).where(cards.c.is_done)).scalars().all()
        pairs = select(answers.c.annotator, cards.c.item_id, cards.c.class_id).join(cards)
        asked = Counter(map(tuple, connection.execute(pairs).all()))
    project.engine.dispose()
    assert len(done) == len(stored) == (1 + OVERLAP) * 2 * ITEMS
    assert given == Counter(done) and set(given.values()) == {1}
    keys = {key for report in reports for _, key, _ in report.acknowledged}
    assert keys == {row.key for row in stored}
    assert max(asked.values()) == 1  # nobody is asked the same twice
    assert all(any(row.annotator.startswith(name) for row in stored) for name in ("left", "right"))
