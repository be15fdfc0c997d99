"""The command line: names of commands and options, and how results are printed."""

import io
import json
import math
import sys
import warnings
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

import comes
from comes.errors import ComesError
from comes.labels import METHODS

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Multi-label classification from candidate labels and complementary labels.",
)

Data = Annotated[Path, typer.Argument(help="A .npz, .csv, .parquet or PML .mat file.")]
Columns = Annotated[
    str,
    typer.Option(
        help="Candidate columns of a table: 0/1 columns, separated by commas, wildcards allowed; "
        'or one column of label names such as "apple;plate".'
    ),
]
Relevant = Annotated[str, typer.Option(help="The same for the truth, where the table has it.")]
Ignore = Annotated[str, typer.Option(help="Columns that are neither label nor feature.")]
Json = Annotated[bool, typer.Option("--json", help="Print json.")]
ModelFolder = Annotated[Path, typer.Option("--model", "-m", help="Folder that 'comes fit' wrote.")]
Seed = Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Seed of everything random.")]


def main() -> None:
    """Run the command line; our own errors become one line and exit code 1."""
    warnings.showwarning = _print_warning
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # arrows on a terminal without them
            stream.reconfigure(errors="replace")
    try:
        app(prog_name="comes")
    except ComesError as error:
        print(f"Error: {error}", file=sys.stderr)
        sys.exit(1)


@app.callback(invoke_without_command=True)
def version(
    show: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
) -> None:
    """Learn multi-label classifiers from candidate labels and complementary labels."""
    if show:
        print(f"comes {comes.__version__}")
        raise typer.Exit


@app.command()
def demo(
    scenes: Annotated[int, typer.Option(min=20, help="Number of training scenes.")] = 10000,
    epochs: Annotated[int, typer.Option(min=1)] = 50,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Learn from candidate labels of embedded digit scenes and compare the methods.

    Example: comes demo
    """
    from comes.demo import run_demo

    rows = run_demo(scenes, epochs, seed)
    if as_json:
        _print_json([row._asdict() for row in rows])
        return
    print(
        f"{scenes} scenes of handwritten digits; of the scenes without a digit, one in ten says so."
        "\nTrained on these candidates, and once on the true labels; metrics on 2000 new scenes."
    )
    _print_metrics([(row.title, row.metrics) for row in rows])


@app.command()
def fit(
    data: Data,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the model.")],
    method: Annotated[str, typer.Option(help=f"One of {', '.join(METHODS)}.")] = "comes-hl",
    labels: Columns = "",
    relevant: Relevant = "",
    ignore: Ignore = "",
    label_names: Annotated[
        str, typer.Option(help="All labels there are, where a column of names may not show them.")
    ] = "",
    complementary: Annotated[
        bool, typer.Option("--complementary", help="The labels mark what is surely irrelevant.")
    ] = False,
    model: Annotated[str, typer.Option(help="mlp or linear.")] = "mlp",
    epochs: Annotated[int, typer.Option(min=1)] = 200,
    batch_size: Annotated[int, typer.Option(min=1)] = 256,
    learning_rate: Annotated[float, typer.Option(min=0)] = 5e-3,
    reduction: Annotated[str, typer.Option(help="auto, sum, mean or per_label.")] = "auto",
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, ...")] = "auto",
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Train a model on candidate labels, or on complementary labels.

    Example: comes fit photos.csv --labels 'has_*' --method comes-hl -o model/
    """
    from comes.datasets import read_dataset
    from comes.estimator import CandidateClassifier, storage

    partial = Path(f"{output}.partial")
    for target in (output, partial):
        storage.check_target(target)
    dataset = read_dataset(
        data,
        labels=_split(labels),
        relevant=_split(relevant),
        ignore=_split(ignore),
        complementary=complementary,
        label_names=_split(label_names) or None,
    )
    classifier = CandidateClassifier(
        method,
        model=model,
        epochs=epochs,
        batch_size=batch_size,
        learning_rate=learning_rate,
        reduction=reduction,
        device=device,
        random_state=seed,
    ).fit(dataset.X, dataset.candidates_with_names())
    history = classifier.history_
    if not history.risk:
        raise KeyboardInterrupt  # before the first epoch: nothing to keep
    if history.interrupted:  # the work so far is kept, but not in place of a finished model
        output = partial
    classifier.save(output)
    summary = {
        "data": str(dataset),
        "method": method,
        "epochs": len(history.risk),
        "interrupted": history.interrupted,
        "seconds": round(history.seconds, 2),
        "risk": history.risk[-1],
        "model": str(output),
    }
    _print_summary(summary, as_json)
    if history.interrupted:
        raise typer.Exit(130)


@app.command()
def predict(
    data: Data,
    model: ModelFolder,
    output: Annotated[Path, typer.Option("--output", "-o", help="A .csv or .parquet file.")],
    as_json: Json = False,
) -> None:
    """Write predicted labels and scores for every row.

    Example: comes predict new.csv --model model/ -o predictions.csv
    """
    from comes.datasets import check_table_name, prediction_table, read_features, write_table
    from comes.estimator import CandidateClassifier
    from comes.files import check_file_target

    check_table_name(output)
    check_file_target(output)
    classifier = CandidateClassifier.load(model)
    scores = classifier.decision_function(read_features(data, classifier.feature_names))
    table = prediction_table(scores, classifier.cut_scores(scores), classifier.label_names_)
    write_table(table, output)
    summary = {"rows": len(table), "labels": len(classifier.label_names_), "file": str(output)}
    _print_summary(summary, as_json)


@app.command()
def evaluate(
    data: Data,
    model: ModelFolder,
    relevant: Relevant = "",
    convention: Annotated[
        Literal["pml", "sklearn"], typer.Option(help="pml is the paper's.")
    ] = "pml",
    as_json: Json = False,
) -> None:
    """Compare a model's scores with true labels.

    Example: comes evaluate test.csv --relevant 'is_*' --model model/
    """
    from comes import metrics
    from comes.datasets import read_dataset
    from comes.estimator import CandidateClassifier

    classifier = CandidateClassifier.load(model)
    dataset = read_dataset(
        data,
        relevant=_split(relevant),
        features=classifier.feature_names,
        label_names=classifier.label_names_,
    )
    truth = dataset.known_relevant()
    scores = classifier.decision_function(dataset.X)
    values = metrics.evaluate(scores, truth, classifier.cut_scores(scores), convention)
    degenerate = metrics.count_degenerate(truth)
    if as_json:
        _print_json({**values, **degenerate, "convention": convention})
        return
    _print_metrics([(classifier.method, values)])
    print(f"{len(truth)} rows; convention: {convention}; {_lines(degenerate, '; ')}")


def _print_metrics(rows: list[tuple[str, dict[str, float]]]) -> None:
    """Print one row of metrics per title, with the way that is up."""
    from rich.box import SIMPLE
    from rich.console import Console
    from rich.table import Table

    from comes.metrics import METRICS

    table = Table(box=SIMPLE)
    table.add_column("")
    for metric in METRICS.values():
        table.add_column(
            f"{metric.title} {'↑' if metric.higher_is_better else '↓'}", justify="right"
        )
    for title, values in rows:
        table.add_row(title, *(f"{values[name]:.3f}" for name in METRICS))
    Console(width=max(100, Console().width)).print(table)


def _print_summary(summary: dict[str, Any], as_json: bool) -> None:
    if as_json:
        _print_json(summary)
    else:
        print(_lines(summary))


def _print_json(values: Any) -> None:
    """Print json; a metric that no row counts for is null."""
    print(json.dumps(_without_nan(values), indent=2, ensure_ascii=False))


def _without_nan(values: Any) -> Any:
    if isinstance(values, dict):
        return {key: _without_nan(value) for key, value in values.items()}
    if isinstance(values, list):
        return [_without_nan(value) for value in values]
    return None if isinstance(values, float) and not math.isfinite(values) else values


def _lines(values: dict[str, Any], separator: str = "\n") -> str:
    return separator.join(f"{name.replace('_', ' ')}: {value}" for name, value in values.items())


def _split(columns: str) -> list[str]:
    return [name for part in columns.split(",") if (name := part.strip())]


def _print_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    print(f"Warning: {message}", file=sys.stderr)
