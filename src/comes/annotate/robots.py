"""Simulated annotators, who answer over HTTP as a browser does."""

import http.client
import json
import random
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from comes.errors import ComesError

Say = Callable[[str, str], str]  # name of the item, name of the class -> no, maybe or skip
PATIENCE = 30.0  # seconds that a robot tries to reach the server


@dataclass
class RobotReport:
    """What a robot did."""

    acknowledged: list[tuple[int, str, str]] = field(default_factory=list)  # card, key, answer
    seconds: list[float] = field(default_factory=list)  # from sending an answer to its reply
    refused: list[int] = field(default_factory=list)  # statuses
    error: str = ""


def run_robots(
    address: str,
    count: int,
    say: Say,
    *,
    token: str = "",
    pause: float = 0.0,
    most: int | None = None,
    on_answer: Callable[[], None] = lambda: None,
    name: str = "robot",
) -> list[RobotReport]:
    """Let robots answer all cards, at once, each in a thread of its own.

    Parameters
    ----------
    address : str
        Of the server, as http://127.0.0.1:8000.
    count : int
        Number of robots.
    say : callable (item, class) -> "no", "maybe" or "skip"
    token : str
        Where the server wants one.
    pause : float
        Seconds between an answer and the next, on average; each is drawn from twice that. People
        take one or two.
    most : int, optional
        Answers of each robot, after which it stops.
    on_answer : callable
        Called after every answer, for a progress bar.
    name : str
        What the robots are called, with a number.
    """
    reports = [RobotReport() for _ in range(count)]

    def work(number: int) -> None:
        robot = _Robot(address, token, reports[number])
        try:
            robot.join(f"{name} {number + 1}")
            robot.answer_all(say, pause, most, on_answer)
        except Exception as error:  # a thread has nobody to tell but the report
            reports[number].error = str(error) or type(error).__name__
        finally:
            robot.close()

    threads = [threading.Thread(target=work, args=(k,), daemon=True) for k in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return reports


class _Robot:
    def __init__(self, address: str, token: str, report: RobotReport) -> None:
        place = urlsplit(address).netloc
        self._connection = http.client.HTTPConnection(place, timeout=PATIENCE)
        self._tab, self._report = secrets.token_urlsafe(16), report
        self._cookies = f"comes_token={token}" if token else ""

    def close(self) -> None:
        self._connection.close()

    def join(self, name: str) -> None:
        status, _ = self._post("/api/join", {"name": name}, keep_cookie=True)
        if status != 200:
            raise ComesError(f"the server refuses robots: {status}.")

    def answer_all(
        self, say: Say, pause: float, most: int | None, on_answer: Callable[[], None]
    ) -> None:
        left = most if most is not None else float("inf")
        while left > 0:
            status, reply = self._post("/api/cards", {"tab": self._tab})
            if status != 200:
                raise ComesError(f"the server gives no cards: {status}, {reply}.")
            if not reply["cards"]:
                return
            for card in reply["cards"]:
                if left <= 0:
                    return
                self._answer(card, say(card["name"], card["class"]))
                on_answer()
                left -= 1
                if pause:
                    time.sleep(random.uniform(0, 2 * pause))  # people are not in step

    def _answer(self, card: dict[str, Any], answer: str) -> None:
        key = secrets.token_urlsafe(16)
        given = {"card": card["card"], "answer": answer, "key": key, "seconds": 1.0}
        started = time.perf_counter()
        status, _ = self._post("/api/answers", {"tab": self._tab, "answers": [given]})
        self._report.seconds.append(time.perf_counter() - started)
        if status == 200:
            self._report.acknowledged.append((card["card"], key, answer))
        else:
            self._report.refused.append(status)

    def _post(self, path: str, body: Any, keep_cookie: bool = False) -> tuple[int, Any]:
        """Send until there is a reply, as a browser's queue does; the same key all the time."""
        until = time.monotonic() + PATIENCE
        while True:
            try:
                headers = {"Content-Type": "application/json", "Cookie": self._cookies}
                self._connection.request("POST", path, json.dumps(body), headers)
                reply = self._connection.getresponse()
                content = reply.read()
            except (OSError, http.client.HTTPException):
                self._connection.close()  # the next request opens it again
                if time.monotonic() > until:
                    raise
                time.sleep(0.02)
                continue
            if reply.status == 503 and time.monotonic() < until:
                time.sleep(0.05)
                continue
            if keep_cookie:
                named = (reply.getheader("set-cookie") or "").partition(";")[0]
                self._cookies = "; ".join(part for part in (self._cookies, named) if part)
            return reply.status, json.loads(content)
