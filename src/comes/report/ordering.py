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
    """Return results by experiment, data set, method and value of a sweep, in the paper's order."""
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
