"""Whether predicted probabilities are right: the reliability curve."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.axes import Axes

from comes.answers.convert import as_relevant
from comes.errors import ComesError
from comes.label_metrics import bound_share
from comes.plots.plot_style import FEW, drawing, escape_name, find_ink

LINES = ("-", ":", "-.", (0, (5, 1)))  # apart in grey, and from the dashes of the diagonal
COLUMNS = ("predicted", "relevant", "low", "high")


def plot_calibration(
    found: Any,
    relevant: npt.ArrayLike | None = None,
    *,
    n_bins: int = 10,
    axes: Axes | None = None,
) -> Axes:
    """Draw how often pairs are relevant over how often they should be, with intervals.

    Probabilities are right where the dashed line runs through the intervals.

    Parameters
    ----------
    found : DataFrame, array (n_samples, n_labels), or mapping of str to these
        What `comes.selection.check_reliability` makes of probabilities and answers, or
        probabilities themselves, which need ``relevant``. Several are drawn by name.
    relevant : bool array of shape (n_samples, n_labels), optional
        The truth that probabilities are compared with; intervals of 95 % are Wilson's.
    n_bins : int
        Ranges of equal width that probabilities are put into.
    axes : Axes, optional
        By default those of a new figure.

    Returns
    -------
    axes : Axes

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> eta = rng.random((500, 3))
    >>> axes = plot_calibration(eta, rng.random((500, 3)) < eta)
    >>> axes.get_xlabel(), axes.get_ylabel()
    ('predicted probability', 'share of relevant pairs')
    """
    named = dict(found) if isinstance(found, Mapping) else {"": found}
    tables = {name: _read_bins(one, relevant, n_bins) for name, one in named.items()}
    if not tables:
        raise ComesError("there is nothing to draw: found is empty. Give at least one reliability.")
    with drawing(axes, 3.4, width=3.6) as axes:
        axes.plot([0, 1], [0, 1], color=find_ink(axes), linewidth=0.8, linestyle="dashed")
        for k, (name, bins) in enumerate(tables.items()):
            colour, marker = FEW[k % len(FEW)]
            known = bins.dropna(subset=["low", "high"])
            axes.vlines(known["predicted"], known["low"], known["high"], color=colour, lw=1.5)
            look: dict[str, Any] = {"color": colour, "marker": marker, "markersize": 4}
            look["linestyle"] = LINES[k % len(LINES)]
            axes.plot(bins["predicted"], bins["relevant"], label=escape_name(name), **look)
        axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), aspect="equal")
        axes.set_xlabel("predicted probability")
        axes.set_ylabel("share of relevant pairs")
        if isinstance(found, Mapping):
            axes.legend(loc="upper left")
    return axes


def _read_bins(found: Any, relevant: npt.ArrayLike | None, n_bins: int) -> pd.DataFrame:
    """Return a row for every range of probabilities in which something is known."""
    if isinstance(found, pd.DataFrame) and set(COLUMNS) <= set(found.columns):
        return found.dropna(subset="relevant")
    if relevant is None:
        raise ComesError(
            "probabilities are compared with relevant=, the truth, which was not given. Give it, "
            "or pass what comes.selection.check_reliability makes of answers."
        )
    return _count_bins(np.asarray(found, dtype=np.float64), as_relevant(relevant), n_bins)


def _count_bins(
    probabilities: npt.NDArray[np.float64], relevant: npt.NDArray[np.bool_], n_bins: int
) -> pd.DataFrame:
    """Return mean probabilities and shares of relevant pairs, by range of probabilities."""
    inside = (probabilities >= 0) & (probabilities <= 1)
    if probabilities.shape != relevant.shape or not inside.all():
        raise ComesError(
            "probabilities must lie in [0, 1] and have the shape of the relevant labels, "
            f"{relevant.shape}; got {probabilities.shape}. Pass what predict_proba returns."
        )
    place = np.minimum((probabilities * n_bins).astype(int), n_bins - 1).ravel()
    n_pairs = np.bincount(place, minlength=n_bins)
    full = n_pairs > 0
    total = np.bincount(place, weights=probabilities.ravel(), minlength=n_bins)[full]
    hits = np.bincount(place, weights=relevant.ravel(), minlength=n_bins)[full]
    share = bound_share(hits, n_pairs[full])
    numbers = (total / n_pairs[full], *share)
    return pd.DataFrame(dict(zip(COLUMNS, numbers, strict=True)))
