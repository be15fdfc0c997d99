"""Signals that end a program, which let it finish what must not be cut, and a parent's end."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

NAMES = ("SIGINT", "SIGTERM", "SIGHUP")
SIGNALS = [getattr(signal, name) for name in NAMES if hasattr(signal, name)]


def run_interruptible(run: Callable[[], int]) -> int:
    """Run a command that SIGTERM and SIGHUP interrupt as Ctrl-C does, and are ignored afterwards.

    Return its exit code: 130 after Ctrl-C, 128 plus the number of another signal.
    """
    received: list[int] = []

    def interrupt(number: int, _: FrameType | None) -> None:
        received.append(number)
        raise KeyboardInterrupt

    def ignore() -> None:
        for number in SIGNALS:
            if signal.getsignal(number) is interrupt:
                signal.signal(number, signal.SIG_IGN)

    code = 130
    try:
        for number in SIGNALS:
            is_default = number != signal.SIGINT and signal.getsignal(number) == signal.SIG_DFL
            if is_default and _is_main_thread():
                signal.signal(number, interrupt)
        code = run()
        ignore()
    except KeyboardInterrupt:  # also before or after the command
        ignore()
    return 128 + received[-1] if received else code


@contextmanager
def deferring_interrupts(*, at_once: bool = True) -> Iterator[None]:
    """Let signals wait, at once or from `defer_from_here` on, to the end or `no_longer_defer`.

    A second one does not wait.
    """
    deferral = _Deferral()
    _DEFERRALS.append(deferral)
    try:
        if at_once:
            deferral.start()
        yield
    finally:
        _DEFERRALS.remove(deferral)
        deferral.restore()
    deferral.raise_waiting()


def defer_from_here() -> None:
    """Let signals wait from here on, inside a block of `deferring_interrupts`; else do nothing."""
    if _DEFERRALS:
        _DEFERRALS[-1].start()


def no_longer_defer() -> None:
    """Let signals raise again, inside a block of `deferring_interrupts`, and one that waits now."""
    if _DEFERRALS and _is_main_thread():
        _DEFERRALS[-1].restore()
        _DEFERRALS[-1].raise_waiting()


def end_with_parent(parent: int) -> None:
    """End this process soon after its parent has ended, killed perhaps; returns at once."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(1)  # nobody waits for what it does, and files are written whole or not at all

    threading.Thread(target=watch, name="comes-parent", daemon=True).start()


class _Deferral:
    """Signals that wait, and the handlers that they had."""

    def __init__(self) -> None:
        self.waiting: list[int] = []
        self.handlers: dict[int, Any] = {}

    def start(self) -> None:
        """Let signals wait; in the main thread alone, which gets them."""
        if self.handlers or not _is_main_thread():
            return
        handlers = {number: signal.getsignal(number) for number in SIGNALS}
        # What kills or is ignored stays as it is.
        self.handlers = {
            number: handler for number, handler in handlers.items() if callable(handler)
        }
        for number in self.handlers:
            signal.signal(number, self._wait)

    def restore(self) -> None:
        """Give signals their handlers back."""
        for number, handler in self.handlers.items():
            signal.signal(number, handler)
        self.handlers = {}

    def raise_waiting(self) -> None:
        """Raise the first signal that waited."""
        if self.waiting:
            number = self.waiting[0]
            self.waiting.clear()
            signal.raise_signal(number)

    def _wait(self, number: int, _: FrameType | None) -> None:
        self.waiting.append(number)
        if len(self.waiting) > 1:
            self.restore()
            self.raise_waiting()


_DEFERRALS: list[_Deferral] = []  # the innermost block last


def _is_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()
