"""The numbers of the paper's Tables 2 and 3 (``published.csv``), beside ours."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import numpy as np
import numpy.typing as npt
import pandas as pd

from comes.metrics import METRICS
from comes.results import Result
from comes.significance import standard_deviation

# Data sets that are part of one of the paper's.
PART_OF = {
    "mirflickr5000": ("mirflickr", "5000 of the 10433 rows"),
    "VOC2012-160px": ("VOC2012", "every image, resized to 160 x 160,"),
}
PAPER_RATE = {"a": 0.9, "b": 0.1}


@dataclass(frozen=True)
class Beside:
    """A result of ours and the paper's for the same method on the same data set."""

    data: str
    method: str
    metric: str  # its title
    ours: float
    ours_std: float
    paper: float
    paper_std: float


@cache
def published() -> pd.DataFrame:
    """Return the paper's means and standard deviations: data, case, method, metric, mean, std."""
    with files("comes.report").joinpath("published.csv").open("rb") as file:
        return pd.read_csv(file, keep_default_na=False)


def beside_paper(results: Sequence[Result]) -> list[Beside]:
    """Return ours and the paper's numbers, where the paper has the same method and data set."""
    rows = []
    for result in results:
        if result.names.method != result.spec.method or result.names.sweep is not None:
            continue
        for metric, mean, std in _find_published(result):
            for title, values in _gather_values(result, metric):
                if not np.isnan(values).any():
                    ours = (round(float(values.mean()), 3), round(standard_deviation(values), 3))
                    names = (result.names.data, result.names.method)
                    rows.append(Beside(*names, title, *ours, mean, std))
    return rows


def _find_published(result: Result) -> Iterable[tuple[str, float, float]]:
    """Return what the paper has for the same method, data and rate: metric, mean and std."""
    data = result.spec.data
    name = source_name(result)
    name, case = PART_OF.get(name, (name, ""))[0], data.case or ""
    rate = PAPER_RATE.get(case) if data.rate is None else data.rate
    if case and rate != PAPER_RATE.get(case):
        return []
    return _group_published().get((name, case, result.spec.method), [])


@cache
def _group_published() -> dict[tuple[str, str, str], list[tuple[str, float, float]]]:
    """Return metrics, means and standard deviations by data set, case and method."""
    grouped: dict[tuple[str, str, str], list[tuple[str, float, float]]] = {}
    for data, case, method, metric, mean, std in published().itertuples(index=False):
        grouped.setdefault((data, case, method), []).append((metric, mean, std))
    return grouped


def _gather_values(result: Result, metric: str) -> Iterator[tuple[str, npt.NDArray[np.float64]]]:
    """Yield title and values of a metric; the Hamming loss by two cuts of the scores."""
    yield METRICS[metric].title, result.values(metric)
    if metric == "hamming_loss":  # of which the paper does not say how it cuts scores
        yield "Hamming loss, min-max", np.array([r.hamming_loss.minmax for r in result.repeats])


def source_name(result: Result) -> str:
    """Return the name of the data set, without the part of it that is trained on."""
    return result.spec.data.name.partition(":")[0]


def is_papers_data(result: Result) -> bool:
    """Return whether the paper has this data set, or one that it is part of."""
    name = source_name(result)
    return PART_OF.get(name, (name, ""))[0] in set(published()["data"])
