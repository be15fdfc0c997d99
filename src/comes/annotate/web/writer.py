"""One thread that writes, and commits once for all commands that wait.

Waiting for the disk takes longer than storing an answer. While one commit is under way, the
commands of other requests queue up, and the next commit stores them together. The future of a
command is done when its commit is.
"""

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine

from comes.annotate.cards import RefusedError
from comes.annotate.schema import WRITES

Result = TypeVar("Result")
Command = Callable[[Connection], Any]
Waiting = tuple[Command, "Future[Any]"]
COMMANDS_AT_ONCE = 200  # commands in one commit


class Writer:
    """Runs commands one after the other, in transactions that they share.

    Examples
    --------
    >>> from sqlalchemy import create_engine, text
    >>> writer = Writer(create_engine("sqlite://"))
    >>> writer.submit(lambda connection: connection.execute(text("SELECT 1")).scalar()).result()
    1
    >>> writer.close()
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine.execution_options(**WRITES)
        self._waiting: queue.SimpleQueue[Waiting | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run_batches, name="comes-writer", daemon=True)
        self._thread.start()

    def submit(self, command: Callable[[Connection], Result]) -> "Future[Result]":
        """Queue a command, which looks before it writes and may refuse."""
        future: Future[Result] = Future()
        self._waiting.put((command, future))
        return future

    def close(self) -> None:
        """Run the commands that wait, and stop."""
        self._waiting.put(None)
        self._thread.join()

    def _run_batches(self) -> None:
        is_open = True
        while is_open:
            batch = [self._waiting.get()]
            while len(batch) < COMMANDS_AT_ONCE and not self._waiting.empty():
                batch.append(self._waiting.get())
            is_open = None not in batch
            # The command of a browser that has gone away is not run.
            self._commit_batch(
                [one for one in batch if one and one[1].set_running_or_notify_cancel()]
            )

    def _commit_batch(self, batch: list[Waiting]) -> None:
        results: list[Any] = []
        try:
            with self._engine.begin() as connection:
                for command, _ in batch:
                    try:
                        results.append(command(connection))
                    except RefusedError as refusal:
                        results.append(refusal)
        except Exception as error:  # nothing of the batch is stored
            if len(batch) == 1:
                batch[0][1].set_exception(error)
            else:
                for one in batch:
                    self._commit_batch([one])
            return
        for (_, future), result in zip(batch, results, strict=True):
            if isinstance(result, RefusedError):
                future.set_exception(result)
            else:
                future.set_result(result)
