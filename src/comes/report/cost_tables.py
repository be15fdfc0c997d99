"""What results cost, and what they say of each label: tables of one experiment."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from comes.report.metric_tables import escape_markdown
from comes.results import Result

LABEL_METRIC = "average_precision"  # of labels, on the page; the file has all
MOST_LABELS = 100  # on the page


@dataclass(frozen=True)
class Cost:
    """What a method cost on a data set; None where a result does not say."""

    data: str
    method: str
    at: float | None  # the value of what an experiment varies
    epochs: float  # mean over repeats
    seconds_per_training: float | None
    seconds: float  # of all repeats, with reading, choosing and testing
    memory: float | None  # MiB, the most that the process needed
    device_memory: float | None
    device: str

    @property
    def cells(self) -> list[str]:
        """The numbers, as tables show them."""
        each = self.seconds_per_training
        return [
            f"{self.epochs:.0f}",
            "–" if each is None else show_seconds(each),
            show_seconds(self.seconds),
            *("–" if m is None else f"{m:.0f}" for m in (self.memory, self.device_memory)),
            "GPU" if self.device.startswith("cuda") else self.device.upper(),
        ]


COST_TITLES = (
    "epochs",
    "seconds per training",
    "seconds in all",
    "peak memory (MiB)",
    "on the GPU (MiB)",
    "device",
)


def list_costs(results: Sequence[Result]) -> list[Cost]:
    """Return what every result cost."""
    return [
        Cost(
            result.names.data,
            result.names.method,
            result.at,
            float(np.mean([len(repeat.risk) for repeat in result.repeats])),
            _mean_seconds(result),
            result.seconds,
            result.peak_memory,
            result.peak_device_memory,
            result.device,
        )
        for result in results
    ]


def _mean_seconds(result: Result) -> float | None:
    """Return the seconds of a training, None if a repeat does not say."""
    seconds = [repeat.seconds for repeat in result.repeats if repeat.seconds is not None]
    return float(np.mean(seconds)) if len(seconds) == len(result.repeats) else None


def show_seconds(value: float) -> str:
    """Return seconds with three digits that count."""
    return f"{value:.3g}" if value < 1000 else f"{value:.0f}"


def costs_to_markdown(costs: Sequence[Cost]) -> str:
    """Return a row for every result."""
    lines = [f"| data | method | {' | '.join(COST_TITLES)} |"]
    lines.append(f"| --- | --- |{' --- |' * len(COST_TITLES)}")
    for cost in costs:
        at = "" if cost.at is None else f", {cost.at:g}"
        names = f"{escape_markdown(cost.data)}{at} | {escape_markdown(cost.method)}"
        lines.append(f"| {names} | {' | '.join(cost.cells)} |")
    return "\n".join(lines)


@dataclass(frozen=True)
class LabelTable:
    """The mean average precision over rows of each label, by method, on one data set."""

    data: str
    methods: list[str]
    rows: list[tuple[str, list[float]]]  # a label with its numbers, the hardest first

    @property
    def shown(self) -> list[tuple[str, list[float]]]:
        """The rows that a page shows."""
        return self.rows[:MOST_LABELS]


def make_label_tables(results: Sequence[Result]) -> list[LabelTable]:
    """Return a table for every data set whose results have metrics of labels."""
    tables = []
    for data in dict.fromkeys(result.names.data for result in results):
        own = [r for r in results if r.names.data == data]
        found = {result.names.method: result.label_means(LABEL_METRIC) for result in own}
        means = {method: values for method, values in found.items() if values is not None}
        names = next((r.label_names for r in own if r.label_names is not None), None)
        if not means or names is None:
            continue
        numbers = np.array(list(means.values()))  # (methods, labels)
        best = np.where(np.isfinite(numbers), numbers, -np.inf).max(axis=0)
        order = np.argsort(best, kind="stable")
        rows = [(names[label], numbers[:, label].tolist()) for label in order]
        tables.append(LabelTable(data, list(means), rows))
    return tables


def list_label_numbers(results: Sequence[Result]) -> Iterator[dict[str, Any]]:
    """Yield a row for every metric of every label of every repeat."""
    for result in results:
        names = result.names
        where: dict[str, Any] = {"experiment": names.experiment, "data": names.data}
        where |= {"method": names.method, "at": result.at}
        for k, repeat in enumerate(result.repeats):
            for metric, values in (repeat.by_label or {}).items():
                for label, value in zip(result.label_names or (), values, strict=True):
                    yield where | {"repeat": k, "label": label, "metric": metric, "value": value}
