"""Risks during training."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from comes.errors import ComesError
from comes.plots.plot_style import BLUE, Look, drawing, escape_name

ONE: dict[str, Any] = {"color": BLUE, "marker": "o"}


def plot_risks(
    trained: Any,
    *,
    relative: bool = False,
    look: Look | None = None,
    axes: Axes | None = None,
) -> Axes:
    """Draw the risk of every epoch, and dashed that of rows that were held out.

    A ring marks the epoch whose weights were kept.

    Parameters
    ----------
    trained : fitted classifier, History, or mapping of str to these
        Several trainings are drawn by name.
    relative : bool
        Divide each curve by its first value: risks of different methods have different scales.
    look : Look, optional
        Colours and markers of the names.
    axes : Axes, optional
        By default those of a new figure.

    Returns
    -------
    axes : Axes

    Examples
    --------
    >>> from comes.training import History
    >>> history = History(risk=[0.7, 0.5, 0.4], validation=[0.7, 0.6, 0.65], best_epoch=2)
    >>> axes = plot_risks(history)
    >>> [text.get_text() for text in axes.get_legend().get_texts()]
    ['training', 'held-out rows', 'kept']
    """
    is_named = isinstance(trained, Mapping)
    named = dict(trained) if is_named else {"": trained}
    histories = {name: getattr(one, "history_", one) for name, one in named.items()}
    if not any(history.risk for history in histories.values()):
        raise ComesError("there is nothing to draw: no epoch was trained. Fit a classifier first.")
    look = look or Look(list(histories))
    with drawing(axes, 2.8, width=4.8) as axes:
        for name, history in histories.items():
            own = (look(name) if is_named else ONE) | {"ms": 4, "lw": 1.2}
            shown = escape_name(name) if is_named else ""
            _draw_curve(axes, history.risk, shown or "training", own, relative)
            if len(history.validation):
                held = own | {"ls": "--", "mfc": "none"}
                label = f"{shown}, held-out rows" if shown else "held-out rows"
                _draw_curve(axes, history.validation, label, held, relative)
                _ring_best(axes, history, own, relative)
        axes.set_xlabel("epoch")
        axes.set_ylabel("risk / risk of epoch 1" if relative else "risk")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        if is_named or axes.get_legend_handles_labels()[1][1:]:
            axes.legend()
    return axes


def _draw_curve(
    axes: Axes, values: Any, label: str, look: Mapping[str, Any], relative: bool
) -> None:
    """Draw a number of every epoch, as it is or over the first."""
    numbers = np.asarray(values, dtype=np.float64)
    scale = (abs(numbers[0]) or 1.0) if relative and len(numbers) else 1.0
    epochs = np.arange(1, len(numbers) + 1)
    every = max(1, len(numbers) // 6)
    axes.plot(epochs, numbers / scale, label=label, markevery=every, **look)


def _ring_best(axes: Axes, history: Any, look: Mapping[str, Any], relative: bool) -> None:
    """Mark the epoch whose weights were kept, on the curve that decided it."""
    if history.best_epoch is None:
        return
    scores = history.validation
    scale = (abs(scores[0]) or 1.0) if relative else 1.0
    ring: dict[str, Any] = {"marker": "o", "ms": 9, "mfc": "none", "ls": "", "color": look["color"]}
    known = axes.get_legend_handles_labels()[1]
    label = None if "kept" in known else "kept"
    axes.plot([history.best_epoch], [scores[history.best_epoch - 1] / scale], label=label, **ring)
