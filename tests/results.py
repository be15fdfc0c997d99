"""Results of experiments that nobody ran, for tests of what is made of them."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure

from comes.experiment.config import DataSpec, SweepKey, TaskSpec
from comes.experiment.results import (
    Degenerate,
    HammingByCut,
    Names,
    RepeatResult,
    Result,
    Size,
    TrueRisk,
    write_result,
)
from comes.metrics import METRICS, Metric
from comes.report import experiment_page as document
from comes.report.experiment_page import make_parts, order_results

STORED = Path(__file__).parents[1] / "experiments" / "results"
BETTER = (0.6, 0.71, 0.8)  # than the default values 0.5, 0.6, 0.7, in every repeat


def make_result(
    method: str = "bce",
    data: str = "photos",
    values: Sequence[float] = (0.5, 0.6, 0.7),
    *,
    experiment: str = "small",
    sweep: SweepKey | None = None,
    metrics: Iterable[str] | None = None,
    data_spec: DataSpec | None = None,
    **spec: Any,
) -> Result:
    """Return a result whose metrics all have these values, one for each repeat."""
    names = METRICS if metrics is None else list(metrics)
    repeats = tuple(
        RepeatResult(
            pml=dict.fromkeys(names, value),
            sklearn=dict.fromkeys(names, value + 0.1),
            hamming_loss=HammingByCut(zero=value, minmax=value + 0.2),
            true_risk=TrueRisk(hamming=value, ranking=2 * value),
            risk=(1.0, value),
            seconds=0.1,
        )
        for value in values
    )
    settled = TaskSpec(data=data_spec or DataSpec(name=data), method=method, folds=3)
    return Result(
        names=Names(experiment, data, method, sweep),
        spec=replace(settled, **spec),
        size=Size(n=30, d=4, q=3),
        degenerate=Degenerate(rows_without_relevant=5, rows_all_relevant=1),
        repeats=repeats,
        seconds=1.5,
        versions={"comes": "0", "torch": "2", "numpy": "2", "python": "3"},
        device="cpu",
    )


def write_results(folder: Path, results: Sequence[Result]) -> Path:
    """Write results into folders task-0, task-1 and so on."""
    for number, result in enumerate(results):
        home = folder / f"task-{number}"
        home.mkdir(parents=True)
        write_result(result, home)
    return folder


def read_folder(folder: Path) -> dict[str, bytes]:
    """Return the content of every file of a folder, by its path inside."""
    paths = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def change_json(path: Path, changes: Mapping[str, Any]) -> None:
    """Change what a file of json says."""
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


ERRORS = ["task-9: no <b>luck</b>"]


def make_results() -> list[Result]:
    """Return three methods on two data sets, and two experiments that vary something."""
    hostile = "<script>alert('x')</script>"
    results = [make_result(m, d) for m in ("bce", hostile) for d in ("photos", "songs")]
    results += [make_result("comes-hl", d, BETTER) for d in ("photos", "songs")]
    results += [
        make_result(experiment="noise", sweep="prior_noise", prior_noise=at) for at in (0.0, 0.5)
    ]
    results += [
        make_result(
            experiment="rows", sweep="train_rows", train_rows=at, values=[0.5 + 10 / at] * 2
        )
        for at in (100, 400)
    ]
    return results


def skip_drawing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let reports have empty plots, for tests of all the rest of them."""
    monkeypatch.setattr(document, "as_svg", lambda figure, name: f"<svg id='{name}'></svg>")
    monkeypatch.setattr(Figure, "savefig", lambda figure, path, **options: path.touch())


SHARPNESS = Metric("sharpness", True, METRICS["coverage"].compute)  # that no result has


def make_all_texts(results: Sequence[Result]) -> dict[str, str]:
    """Return the files of a report that hold no plots."""
    ordered = order_results(results)
    return document.make_texts(ordered, make_parts(ordered))


@contextmanager
def known_metrics(metrics: Mapping[str, Metric]) -> Iterator[None]:
    """Let reports know these metrics, in this order, and afterwards those of before."""
    before = dict(METRICS)
    try:
        METRICS.clear()
        METRICS.update(metrics)
        yield
    finally:
        METRICS.clear()
        METRICS.update(before)


def check_new_metric(results: Sequence[Result], place: str) -> None:
    """Check that one more metric, the first or last, adds empty cells and changes nothing else."""
    before = make_all_texts(results)
    new = {"sharpness": SHARPNESS}
    with known_metrics(new | METRICS if place == "first" else METRICS | new):
        after = make_all_texts(results)
    numbers = after["metrics.csv"].splitlines()
    empty = [line for line in numbers if ",sharpness," in line]
    assert len(empty) == 2 * sum(len(result.repeats) for result in results)
    assert all(line.endswith(",sharpness,") for line in empty)
    rest = [line for line in numbers if ",sharpness," not in line]
    assert rest == before["metrics.csv"].splitlines()
    tables = after["tables.tex"].strip().split("\n\n")
    kept = [table for table in tables if "Sharpness" not in table]
    assert kept == before["tables.tex"].strip().split("\n\n")
