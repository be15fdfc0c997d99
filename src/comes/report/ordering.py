"""The order of methods and data sets in tables: that of the paper."""

from collections.abc import Iterable

from comes.methods import table_rank
from comes.results import Result

# Data sets that are not here come after, by name.
DATA_ORDER = (
    "mirflickr",
    "music_emotion",
    "music_style",
    "yeastbp",
    "yeastcc",
    "yeastmf",
)


def order_results(results: Iterable[Result]) -> list[Result]:
    """Return results by experiment, data set, method and value of a sweep, in the paper's order.

    Parameters
    ----------
    results : list of Result

    Returns
    -------
    results : list of Result

    Examples
    --------
    >>> from comes.results import (
    ...     DataSpec, Degenerate, HammingByCut, Names, RepeatResult, Size, TaskSpec
    ... )
    >>> cuts = HammingByCut(zero=0.2, minmax=0.3)
    >>> def make(method):
    ...     return Result(
    ...         names=Names("smoke", "scenes", method),
    ...         spec=TaskSpec(data=DataSpec(name="scenes"), method=method, label_seeds=1),
    ...         size=Size(n=2000, d=256, q=10),
    ...         degenerate=Degenerate(rows_without_relevant=0, rows_all_relevant=0),
    ...         repeats=(RepeatResult(pml={}, sklearn={}, hamming_loss=cuts, risk=(1.0,)),),
    ...         seconds=1.5,
    ...         versions={},
    ...         device="cpu",
    ...     )
    >>> [r.names.method for r in order_results([make("comes-hl"), make("ctl"), make("bce")])]
    ['bce', 'ctl', 'comes-hl']
    """
    return sorted(
        results,
        key=lambda result: (
            result.names.experiment,
            _rank_data(result.names.data),
            table_rank(result.names.method),
            result.at or 0,
        ),
    )


def _rank_data(data: str) -> tuple[int, str]:
    """Return where a data set stands in a table."""
    known = [place for place, name in enumerate(DATA_ORDER) if data.lower().startswith(name)]
    return (known[0] if known else len(DATA_ORDER), data)
