"""Simulated annotators that answer over HTTP, as a browser does."""

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

COOKIE = "comes_token"
Say = Callable[[str, str], str]  # name of the item, name of the class -> no, yes, maybe or skip
PATIENCE = 30.0  # seconds that a robot tries to reach the server


@dataclass
class RobotReport:
    """What a robot did."""

    acknowledged: list[tuple[int, str, str]] = field(default_factory=list)  # card, key, answer
    seconds: list[float] = field(default_factory=list)  # from sending each answer to its reply
    refused: list[int] = field(default_factory=list)  # statuses
    error: str | None = None  # what stopped it early


def run_robots(
    address: str,
    count: int,
    say: Say,
    *,
    token: str | None = None,
    pause: float = 0.0,
    most: int | None = None,
    on_answer: Callable[[], None] = lambda: None,
    name: str = "robot",
) -> list[RobotReport]:
    """Let robots answer all cards at the same time, each in its own thread.

    Each stops after `most` answers. A pause in seconds is a mean: every one is drawn uniformly from
    0 to twice that. People take one or two. The name of a robot is followed by its number.
    """
    robots = [_Robot(address, token, f"{name} {number}") for number in range(1, count + 1)]
    options = (say, pause, most, on_answer)
    threads = [threading.Thread(target=robot.run, args=options, daemon=True) for robot in robots]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [robot.report for robot in robots]


class _Robot:
    """One annotator, with a connection and a tab."""

    def __init__(self, address: str, token: str | None, name: str) -> None:
        place = urlsplit(address).netloc
        self._connection = http.client.HTTPConnection(place, timeout=PATIENCE)
        self._tab, self._name, self.report = secrets.token_urlsafe(16), name, RobotReport()
        self._cookies = "" if token is None else f"{COOKIE}={token}"

    def run(self, say: Say, pause: float, most: int | None, on_answer: Callable[[], None]) -> None:
        """Answer all cards, and note what went wrong."""
        try:
            self._join()
            self._answer_cards(say, pause, most, on_answer)
        except Exception as error:  # a thread can only report it
            self.report.error = str(error) or type(error).__name__
        finally:
            self._connection.close()

    def _join(self) -> None:
        status, _ = self._post_until_reply("/api/join", {"name": self._name}, keep_cookie=True)
        if status != 200:
            raise RuntimeError(f"the server does not let robots in: it replied {status}.")

    def _answer_cards(
        self, say: Say, pause: float, most: int | None, on_answer: Callable[[], None]
    ) -> None:
        left = most if most is not None else float("inf")
        while left > 0:
            status, reply = self._post_until_reply("/api/cards", {"tab": self._tab})
            if status != 200:
                raise RuntimeError(f"the server gives no cards: it replied {status}, {reply}.")
            if not reply["cards"]:
                return
            for card in reply["cards"]:
                if left <= 0:
                    return
                self._send_answer(card, say(card["name"], card["class"]))
                on_answer()
                left -= 1
                if pause:
                    time.sleep(random.uniform(0, 2 * pause))  # people do not answer in step

    def _send_answer(self, card: dict[str, Any], answer: str) -> None:
        key = secrets.token_urlsafe(16)
        given = {"card": card["card"], "answer": answer, "key": key, "seconds": 1.0}
        started = time.perf_counter()
        status, _ = self._post_until_reply("/api/answers", {"tab": self._tab, "answers": [given]})
        self.report.seconds.append(time.perf_counter() - started)
        if status == 200:
            self.report.acknowledged.append((card["card"], key, answer))
        else:
            self.report.refused.append(status)

    def _post_until_reply(self, path: str, body: Any, keep_cookie: bool = False) -> tuple[int, Any]:
        """Send the same body until there is a reply, as the queue of a browser does."""
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
