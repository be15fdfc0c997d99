"""Signals that end a program: what must not be cut in two is done first, and a parent is watched.

Ctrl-C raises KeyboardInterrupt; the command line lets SIGTERM and SIGHUP do the same, so that what
was trained is kept, and no temporary file stays behind.
"""

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

NAMES = ("SIGINT", "SIGTERM", "SIGHUP")
SIGNALS = [getattr(signal, name) for name in NAMES if hasattr(signal, name)]
LOOK_EVERY = 1.0  # seconds


class Terminated(KeyboardInterrupt):
    """The program was asked to end, by a signal other than Ctrl-C.

    Examples
    --------
    >>> issubclass(Terminated, KeyboardInterrupt)
    True
    """

    number = 0  # of the last signal, 0 if there was none


def end_like_ctrl_c() -> None:
    """Let SIGTERM and SIGHUP end the program as Ctrl-C does; in the main thread alone.

    Examples
    --------
    >>> before = signal.getsignal(signal.SIGTERM)
    >>> end_like_ctrl_c()
    >>> try:
    ...     signal.raise_signal(signal.SIGTERM)
    ... except Terminated:
    ...     print("ended")
    ended
    >>> _, Terminated.number = signal.signal(signal.SIGTERM, before), 0
    """
    Terminated.number = 0
    if _is_main_thread():
        for number in SIGNALS:
            if number != signal.SIGINT and signal.getsignal(number) == signal.SIG_DFL:
                signal.signal(number, _raise_terminated)


def end_at_once() -> None:
    """Ignore the signals of `end_like_ctrl_c` from here on: the program is ending.

    Examples
    --------
    >>> before = signal.getsignal(signal.SIGTERM)
    >>> end_like_ctrl_c()
    >>> end_at_once()
    >>> signal.raise_signal(signal.SIGTERM)  # too late
    >>> _ = signal.signal(signal.SIGTERM, before)
    """
    for number in SIGNALS:
        if signal.getsignal(number) == _raise_terminated:
            signal.signal(number, signal.SIG_IGN)


@contextmanager
def deferring_interrupts(*, at_once: bool = True) -> Iterator[None]:
    """Let signals that end a program wait until the end of the block; a second one does not wait.

    Parameters
    ----------
    at_once : bool
        Let them wait from the start; else from `defer_from_here` on, until `no_longer_defer`.

    Examples
    --------
    >>> try:
    ...     with deferring_interrupts():
    ...         signal.raise_signal(signal.SIGINT)
    ...         print("saved")
    ... except KeyboardInterrupt:
    ...     print("interrupted")
    saved
    interrupted
    """
    own = _Deferral()
    _DEFERRALS.append(own)
    try:
        if at_once:
            own.start()
        yield
    finally:
        _DEFERRALS.remove(own)
        own.restore()
    own.raise_waiting()


def defer_from_here() -> None:
    """Let signals wait from here on, inside a block of `deferring_interrupts`; else do nothing.

    Examples
    --------
    >>> defer_from_here()
    """
    if _DEFERRALS:
        _DEFERRALS[-1].start()


def no_longer_defer() -> None:
    """Let signals raise again, inside a block of `deferring_interrupts`, and one that waits now.

    Examples
    --------
    >>> try:
    ...     with deferring_interrupts():
    ...         signal.raise_signal(signal.SIGINT)
    ...         no_longer_defer()
    ...         print("never")
    ... except KeyboardInterrupt:
    ...     print("interrupted")
    interrupted
    """
    if _DEFERRALS and _is_main_thread():
        _DEFERRALS[-1].restore()
        _DEFERRALS[-1].raise_waiting()


def end_with_parent(parent: int) -> None:
    """End this process soon after its parent has ended, killed perhaps; returns at once.

    Examples
    --------
    >>> end_with_parent(os.getppid())  # which lives
    """
    threading.Thread(target=_watch, args=(parent,), name="comes-parent", daemon=True).start()


def _watch(parent: int) -> None:
    """Look every second whether the parent is still the parent."""
    while os.getppid() == parent:
        time.sleep(LOOK_EVERY)
    os._exit(1)  # nobody waits for what it does, and files are written whole or not at all


def _raise_terminated(number: int, _: FrameType | None) -> None:
    Terminated.number = number
    raise Terminated


def _is_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


class _Deferral:
    """Signals that wait, and the handlers that they had."""

    def __init__(self) -> None:
        self.waiting: list[int] = []
        self.before: dict[int, Any] = {}

    def start(self) -> None:
        """Let signals wait; in the main thread alone, which gets them."""
        if self.before or not _is_main_thread():
            return
        found = {number: signal.getsignal(number) for number in SIGNALS}
        self.before = {number: own for number, own in found.items() if callable(own)}
        for number in self.before:  # what kills or is ignored stays as it is
            signal.signal(number, self._wait)

    def restore(self) -> None:
        """Give signals their handlers back."""
        for number, handler in self.before.items():
            signal.signal(number, handler)
        self.before = {}

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
