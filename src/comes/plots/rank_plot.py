"""Mean ranks of methods over data sets, with the critical difference."""

import pandas as pd
from matplotlib.axes import Axes

from comes.errors import ComesError
from comes.plots.plot_style import Look, drawing, escape_name, find_ink
from comes.significance import Ranks, rank_methods


def plot_critical_difference(
    scores: pd.DataFrame | Ranks,
    *,
    higher_is_better: bool = True,
    look: Look | None = None,
    axes: Axes | None = None,
) -> Axes:
    """Draw mean ranks beside the names; a bar joins methods within the critical difference.

    Methods that one bar joins cannot be told apart by Nemenyi's test at the level 0.05.

    Parameters
    ----------
    scores : DataFrame of shape (n_sets, n_methods), or Ranks
        A metric of every method (columns) on every data set (rows); data sets that miss a method
        are left out. Or what `comes.significance.rank_methods` made of it.
    higher_is_better : bool
        Of the metric; not used where ranks are given.
    look : Look, optional
        Colours and markers of the methods.
    axes : Axes, optional
        By default those of a new figure.

    Returns
    -------
    axes : Axes

    References
    ----------
    Demšar, "Statistical comparisons of classifiers over multiple data sets", JMLR 2006.

    Examples
    --------
    >>> scores = pd.DataFrame({"bce": [0.7, 0.6, 0.8], "mine": [0.8, 0.7, 0.9]})
    >>> axes = plot_critical_difference(scores)
    >>> [tick.get_text() for tick in axes.get_yticklabels()]
    ['mine  1.00', 'bce  2.00']
    """
    ranks = scores if isinstance(scores, Ranks) else _rank(scores, higher_is_better)
    look = look or Look(ranks.methods)
    k, bars, gap = len(ranks.methods), ranks.alike(), ranks.critical_difference
    with drawing(axes, 0.9 + 0.22 * k + 0.14 * len(bars), width=4.2) as axes:
        ink = find_ink(axes)
        for place, (method, rank) in enumerate(zip(ranks.methods, ranks.mean_rank, strict=True)):
            axes.plot([1, rank], [-place, -place], color=ink, lw=0.5)
            axes.plot([rank], [-place], **look(method) | {"ms": 6, "linestyle": ""}, zorder=3)
        for bar, (first, last) in enumerate(bars):
            ends = [ranks.mean_rank[first] - 0.04, ranks.mean_rank[last] + 0.04]
            axes.plot(ends, [-k - 0.6 * bar] * 2, color=ink, lw=3, solid_capstyle="butt")
        axes.plot([1, 1 + gap], [1.2, 1.2], color=ink, lw=1.5, marker="|", ms=7)
        axes.text(1, 1.5, f"critical difference {gap:.2f}", va="bottom")
        axes.set_xlim(0.8, max(k + 0.2, 1.2 + gap))
        axes.set_ylim(-k - 0.6 * len(bars), 2.9)
        _name_ranks(axes, ranks)
    return axes


def _rank(scores: pd.DataFrame, higher_is_better: bool) -> Ranks:
    """Return the ranks of the methods of a table, or raise where there is nothing to rank."""
    ranks = rank_methods(
        [str(name) for name in scores.columns],
        scores.to_numpy(float).T,
        higher_is_better=higher_is_better,
    )
    if ranks is None:
        n_sets, n_methods = scores.shape
        n_full = int(scores.notna().all(axis=1).sum())
        raise ComesError(
            "scores must have two methods (columns) or more, with numbers on two data sets (rows) "
            f"or more; got {n_methods} methods, and {n_full} of {n_sets} data sets with all of "
            "them. Add results, or leave out methods that miss many."
        )
    return ranks


def _name_ranks(axes: Axes, ranks: Ranks) -> None:
    """Write the methods at the left with their mean ranks, and an axis of ranks above."""
    k = len(ranks.methods)
    pairs = zip(ranks.methods, ranks.mean_rank, strict=True)
    names = [f"{escape_name(method)}  {rank:.2f}" for method, rank in pairs]
    axes.set_yticks([-place for place in range(k)], names)
    axes.tick_params(axis="y", length=0)
    axes.xaxis.set_ticks_position("top")
    axes.set_xticks(range(1, k + 1))
    axes.spines["top"].set_visible(True)
    axes.spines["top"].set_bounds(1, k)
    for side in ("left", "bottom", "right"):
        axes.spines[side].set_visible(False)
