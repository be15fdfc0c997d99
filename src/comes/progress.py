"""Progress of long work on standard error: a bar on a terminal, elsewhere a line now and then."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["progress_bar"]

SECONDS_BETWEEN_LINES = 10.0
in_command = False  # set by the command line: estimates of rates show their progress, too
_is_active = False  # a bar inside another is not shown
last_line = time.monotonic()  # or when the command began


@contextmanager
def progress_bar(
    total: int, description: str, *, unit: str = "", show: bool | None = None, start: int = 0
) -> Iterator[Callable[..., None]]:
    """Show progress inside the block: a bar on a terminal, else a line at most every ten seconds.

    Parameters
    ----------
    total : int
        Number of steps.
    description : str
        Shown before the bar.
    unit : str
        Shown before the count, as in "epoch 3/200".
    show : bool, optional
        By default a bar is shown if standard error is a terminal, and lines are if it is not.
    start : int
        Steps that were done before.

    Yields
    ------
    advance : callable (note="", steps=1) -> None
        Moves the bar. The note is shown after the count until the next step.

    Examples
    --------
    >>> with progress_bar(3, "squares", show=False) as advance:
    ...     for number in range(3):
    ...         print(number**2)
    ...         advance(f"last: {number}")
    0
    1
    4
    """
    global _is_active
    unit = unit and f"{unit} "
    if show is False or (_is_active and not show):
        yield lambda note="", steps=1: None
        return
    was_active, _is_active = _is_active, True
    try:
        if not show and not sys.stderr.isatty():
            yield _lines(total, description, unit, start)
            return
        from rich.console import Console  # rich is needed only where a bar is shown
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TextColumn("{task.fields[unit]}{task.completed:.0f}/{task.total:.0f}"),
            TextColumn("{task.fields[note]}", markup=False),
            TimeRemainingColumn(),
        )
        console = Console(stderr=True, force_terminal=show)
        with Progress(*columns, console=console, transient=True) as bar:
            task = bar.add_task(description, total=total, completed=start, unit=unit, note="")
            yield lambda note="", steps=1: bar.update(task, advance=steps, note=note)
    finally:
        _is_active = was_active


def _lines(total: int, description: str, unit: str, start: int) -> Callable[..., None]:
    """Return `advance` that prints such as "training: epoch 12/40, about 9 s left"."""
    global last_line
    began, done = time.monotonic(), start
    if not in_command:  # a command is one work; else each bar is
        last_line = began

    def advance(note: str = "", steps: int = 1) -> None:
        nonlocal done
        global last_line
        done += steps
        now = time.monotonic()
        left = (now - began) / max(done - start, 1) * (total - done)
        # What is over at once needs no line, which would stay in the log as if it were not.
        if now - last_line >= SECONDS_BETWEEN_LINES and left >= SECONDS_BETWEEN_LINES / 10:
            last_line = now
            text = f"{description}: {unit}{done}/{total}, about {left:.0f} s left"
            print(text, file=sys.stderr, flush=True)

    return advance
