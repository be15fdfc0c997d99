"""``comes evaluate``: a model against true labels, or judged by candidates alone."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from comes.cli.option_groups import takes_options
from comes.cli.options import Data, Json, ModelFolder
from comes.cli.printing import format_lines, print_json, print_metrics, print_prose, print_rows
from comes.cli.reading_options import reading_options
from comes.errors import ComesError

if TYPE_CHECKING:
    from comes.datasets import ReadOptions
    from comes.jobs import EstimatedQuality, JudgedTop, Judgement
    from comes.label_metrics import LabelQuality

LABELS_SHOWN = 30


@takes_options(reading=reading_options)
def evaluate(
    data: Data,
    model: ModelFolder,
    reading: "ReadOptions",
    convention: Annotated[
        Literal["pml", "sklearn"],
        typer.Option(help="Which definition of the metrics: pml is the paper's."),
    ] = "pml",
    priors: Annotated[
        Path | None,
        typer.Option(help="A table of class priors for estimates; by default the model's own."),
    ] = None,
    top: Annotated[
        int | None,
        typer.Option(min=1, help="Only P@k and nDCG@k up to so many labels, for very many labels."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Compare a model's scores with true labels, or judge them by candidates where there are none.

    What cannot be said of a label has a reason. The labels that a model is worst about come first.

    Example: comes evaluate test.csv --relevant 'is_*' --model model/

    Example: comes evaluate new.csv --labels 'has_*' --model model/

    Example: comes evaluate test.svm --model model/ --top 5
    """
    from comes.jobs import judge_model, judge_top

    if top is not None:
        if priors is not None:
            raise ComesError("--priors are for estimates, and --top compares with true labels.")
        _print_top(judge_top(model, data, top, reading=reading), as_json)
        return
    judged = judge_model(model, data, reading=reading, priors=priors, convention=convention)
    if as_json:
        print_json(judged.as_dict())
        return
    if judged.metrics is not None:
        print_metrics([(judged.method, judged.metrics)])
        degenerate = format_lines(judged.degenerate, "; ")
        print(f"{judged.n_rows} rows; convention: {convention}; {degenerate}")
        _print_labels(judged.by_label, ("precision", "recall", "f1", "average_precision"))
    if judged.estimated is not None:
        _print_estimates(judged.estimated)
    _print_seen(judged)


def _print_top(judged: "JudgedTop", as_json: bool) -> None:
    """Print the metrics of the best labels."""
    if as_json:
        print_json(judged.as_dict())
        return
    print_rows([{f"{name} ↑": f"{value:.3f}" for name, value in judged.metrics.items()}])
    print(f"{judged.n_rows} rows; rows without relevant, which count 0: {judged.n_empty}")
    _print_seen(judged)


def _print_seen(judged: "Judgement | JudgedTop") -> None:
    """Tell if the numbers are too good, as training saw the rows."""
    if judged.n_seen:
        print(
            f"{judged.n_seen} of {judged.n_rows} rows have the features of rows that training saw: "
            "these numbers are too good for them. Take rows that were held out."
        )


def _print_labels(qualities: Sequence["LabelQuality"], shown: Sequence[str]) -> None:
    """Print what is known of each label, those that the model is worst about first."""
    from comes.label_metrics import LABEL_METRICS, explain_missing

    print_rows(
        [
            {"label": one.label}
            | {name: _write_count(count) for name, count in one.counts.items()}
            | {LABEL_METRICS[name]: str(one.metrics[name]) for name in shown}
            for one in qualities[:LABELS_SHOWN]
        ],
        width=136,  # else intervals are cut
    )
    more = len(qualities) - LABELS_SHOWN
    if more > 0:
        print(f"{more} more {'labels' if more > 1 else 'label'}; --json lists all.")
    for sentence in explain_missing(qualities, shown):
        print(sentence)


def _write_count(count: float) -> str:
    return str(count) if isinstance(count, int) else f"{count:.3f}"


def _print_estimates(estimated: "EstimatedQuality") -> None:
    source = "candidates" if estimated.kind == "candidates" else "answers"
    rows = []
    for metric in estimated.metrics:
        row = {
            f"estimated from {source}": _write_name(metric.name),
            "value": _write_number(metric.value),
            "95 % interval": f"{_write_number(metric.low)} to {_write_number(metric.high)}"
            if metric.reason is None
            else "cannot be estimated",
            "labels": f"{metric.n_labels} of {estimated.n_labels}",
        }
        if any(other.true is not None for other in estimated.metrics):
            row["true"] = _write_number(metric.true)
        rows.append(row)
    print_rows(rows)
    _print_labels(estimated.by_label, ("precision", "recall", "f1", "auc"))
    rates = (
        "irrelevant labels are excluded at a constant rate"
        if estimated.kind == "candidates"
        else "no and yes are said at constant rates, about pairs that were asked at random,"
    )
    for reason, names in estimated.reasons().items():
        shown = ", ".join(map(_write_name, names))
        print(f"Cannot be estimated: {shown}, because {reason}.")
    if estimated.contradiction is not None:
        print(f"Warning: {estimated.contradiction}")
    print_prose(
        "No true label was used for the estimates. They hold for rows that training did not see, "
        f"if {rates} and the class prior (here: {estimated.prior_source}) is right. Uncertainty of "
        f"the prior in the intervals: {estimated.prior_error}. The ranking risk is known up to a "
        "constant."
    )
    if estimated.left_out and estimated.kind == "candidates":
        print(f"Nothing excludes {', '.join(estimated.left_out)}: left out of the estimates.")
    elif estimated.left_out:
        print(f"Nobody says no to {', '.join(estimated.left_out)}: only recall can be estimated.")


def _write_name(name: str) -> str:
    return name.replace("_", " ")


def _write_number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"
