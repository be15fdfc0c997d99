"""The progress bar of long work, on standard error."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["progress_bar"]


@contextmanager
def progress_bar(
    total: int, description: str, *, unit: str = "", show: bool | None = None, start: int = 0
) -> Iterator[Callable[..., None]]:
    """Show a progress bar inside the block, and clear it at the end.

    Parameters
    ----------
    total : int
        Number of steps.
    description : str
        Shown before the bar.
    unit : str
        Shown before the count, as in "epoch 3/200".
    show : bool, optional
        By default the bar is shown if standard error is a terminal.
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
    if not (sys.stderr.isatty() if show is None else show):
        yield _ignore_step
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
        unit = unit and f"{unit} "
        task = bar.add_task(description, total=total, completed=start, unit=unit, note="")
        yield lambda note="", steps=1: bar.update(task, advance=steps, note=note)


def _ignore_step(note: str = "", steps: int = 1) -> None:
    """Stand in for `advance` where no bar is shown."""
