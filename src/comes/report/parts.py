"""The parts of a report: one for every experiment, with its tables."""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass

from comes.metrics import METRICS
from comes.report.cost_tables import Cost, LabelTable, list_costs, make_label_tables
from comes.report.metric_tables import MetricTable, metric_table
from comes.report.paper_differences import what_differs, what_was_run
from comes.report.published import Beside, beside_paper, is_papers_data
from comes.results import Result, SweepKey

# What the paper shows of synthetic labels.
SYNTHETIC_METRIC = "mean_average_precision"
# What is shown of an experiment that varies something.
SWEEP_METRICS = ("average_precision", "ranking_loss", "hamming_loss")


@dataclass(frozen=True)
class Part:
    """What the report says of one experiment."""

    results: Sequence[Result]
    tables: Sequence[MetricTable]  # none where something is varied
    other_tables: Sequence[MetricTable]  # in the other convention
    beside: Sequence[Beside]
    differs: Sequence[str]  # from the paper, of the data that it has
    was_run: Sequence[str]  # how other data was run
    costs: Sequence[Cost]
    label_tables: Sequence[LabelTable]

    @property
    def name(self) -> str:
        """Name of the experiment."""
        return self.results[0].names.experiment

    @property
    def slug(self) -> str:
        """A name for files and anchors; unique within the report."""
        text = f"{self.name}-{self.sweep}" if self.sweep else self.name
        slug = "".join(c if c.isalnum() or c in "-_" else "-" for c in text)
        return slug if slug == text else f"{slug}-{zlib.crc32(text.encode()):08x}"

    @property
    def sweep(self) -> SweepKey | None:
        """What the experiment varies."""
        return self.results[0].names.sweep

    @property
    def data(self) -> list[Result]:
        """One result of every data set, for the counts of its rows."""
        return list({result.names.data: result for result in self.results}.values())

    @property
    def facts(self) -> dict[str, str]:
        """What was run, and where."""
        first = self.results[0]
        kind = "label seeds" if first.spec.folds is None else "folds"
        software = sorted({f"torch {result.versions['torch']}" for result in self.results})
        hours = []
        for device in sorted({result.device.partition(":")[0] for result in self.results}):
            own = [r.seconds for r in self.results if r.device.startswith(device)]
            name = {"cpu": "CPU, one thread each", "cuda": "GPU"}.get(device, device)
            hours.append(f"{len(own)} on a {name} ({sum(own) / 3600:.2f} hours)")
        return {
            "cells": f"{len(self.results)}: {', '.join(hours)}",
            "repeats": f"{len(first.repeats)} {kind}",
            "software": f"comes {first.versions['comes']}, {', '.join(software)}",
        }


def make_parts(results: Sequence[Result]) -> list[Part]:
    """Return a part for every experiment, and for everything that one varies."""
    by_part: dict[tuple[str, str | None], list[Result]] = {}
    for result in results:
        by_part.setdefault((result.names.experiment, result.names.sweep), []).append(result)
    return [_make_part(own) for own in by_part.values()]


def _make_part(results: Sequence[Result]) -> Part:
    papers = [result for result in results if is_papers_data(result)]
    others = [result for result in results if not is_papers_data(result)]
    is_sweep = results[0].names.sweep is not None
    metrics = [] if is_sweep else _order_metrics(results)
    return Part(
        results,
        tables=[metric_table(results, metric) for metric in metrics],
        other_tables=[metric_table(results, metric, "sklearn") for metric in metrics],
        beside=[] if is_sweep else beside_paper(results),
        differs=what_differs(papers) if papers else [],
        was_run=what_was_run(others) if others else [],
        costs=list_costs(results),
        label_tables=[] if is_sweep else make_label_tables(results),
    )


def _order_metrics(results: Sequence[Result]) -> list[str]:
    """Return all metrics; for synthetic labels that of the paper comes first."""
    is_synthetic = results[0].spec.folds is None
    return sorted(METRICS, key=lambda name: not (is_synthetic and name == SYNTHETIC_METRIC))
