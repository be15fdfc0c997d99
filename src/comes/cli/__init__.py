"""The command line: names of commands and options."""

import io
import sys
import warnings
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from typer.core import TyperGroup

import comes
from comes.cli.annotate import app as annotate_app
from comes.cli.bench import bench
from comes.cli.evaluate import evaluate
from comes.cli.fit import fit
from comes.cli.options import Data, Json, ModelFolder, Seed
from comes.cli.printing import (
    print_json,
    print_metrics,
    print_rows,
    print_summary,
    print_warning,
)
from comes.cli.reading import parse_numbers, reads_data
from comes.cli.report import report
from comes.errors import ComesError

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Multi-label classification from candidate labels and complementary labels.",
)

Output = Annotated[
    Path, typer.Option("--output", "-o", help="A .npz, .csv, .parquet, .mat or .jsonl file.")
]
Form = Annotated[
    Literal["wide", "names", "long"], typer.Option(help="Form of the labels in a written table.")
]


def main() -> None:
    """Run the command line; our own errors become one line and exit code 1."""
    warnings.showwarning = print_warning
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
        print_json([row._asdict() for row in rows])
        return
    print(
        f"{scenes} scenes of handwritten digits; of the scenes without a digit, one in ten says so."
        "\nTrained on these candidates, and once on the true labels; metrics on 2000 new scenes."
    )
    print_metrics([(row.title, row.metrics) for row in rows])


class NameOrCommand(TyperGroup):
    """Commands of a group, and ``show`` for whatever else comes first."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that the first word names, or show."""
        if args and args[0] not in self.commands:
            args = ["show", *args]
        return super().resolve_command(ctx, args)


datasets_app = typer.Typer(cls=NameOrCommand, rich_markup_mode=None)
app.add_typer(datasets_app, name="datasets")


@datasets_app.callback(invoke_without_command=True)
def datasets(context: typer.Context, as_json: Json = False) -> None:
    """List the data sets that have a name, describe and check one, or convert a file.

    Example: comes datasets

    Example: comes datasets YeastBP

    Example: comes datasets photos.csv --labels 'has_*'
    """
    context.obj = as_json  # comes datasets --json NAME
    if context.invoked_subcommand is not None:
        return
    from comes.datasets import KNOWN

    rows = [
        {
            "name": f"{known.name}:{split}" if split else known.name,
            "rows": n,
            "features": known.n_features,
            "labels": known.n_labels,
            "at_hand": known.is_at_hand(split),
            "download": known.can_be_downloaded(split),
            "about": known.about,
        }
        for known in KNOWN.values()
        for split, n in known.rows.items()
    ]
    if as_json:
        print_json(rows)
        return
    for row in rows:
        state = "at hand" if row["at_hand"] else "download" if row["download"] else "by hand"
        row["features"] = row["features"] or "images"
        row["at_hand"] = state
        del row["download"]
    print_rows(rows)


@datasets_app.command("show")
@reads_data
def show_dataset(
    context: typer.Context, data: Data, reading: dict[str, Any], as_json: Json = False
) -> None:
    """Describe a data set, and say what deserves a look.

    Example: comes datasets show photos.csv --labels 'has_*'
    """
    from comes.datasets import check_dataset, open_dataset

    dataset = open_dataset(data, **reading)
    findings = check_dataset(dataset)
    if as_json or context.obj:
        print_json({"data": str(dataset), **{found.name: found.number for found in findings}})
        return
    print(dataset)
    for finding in findings:
        print(f"- {finding.text}")
    if dataset.candidates is not None and dataset.relevant is not None:
        print("Every relevant label is a candidate.")


@datasets_app.command("convert")
@reads_data
def convert_dataset(
    data: Data,
    output: Annotated[Path, typer.Argument(help="A .npz, .csv, .parquet, .mat or .jsonl file.")],
    reading: dict[str, Any],
    form: Form = "wide",
    as_json: Json = False,
) -> None:
    """Write a data set in another format, named by the ending.

    Example: comes datasets convert answers.json answers.csv --form long
    """
    from comes.datasets import check_writable, open_dataset, write_dataset
    from comes.files import check_file_target

    check_writable(output, form)
    check_file_target(output)
    dataset = open_dataset(data, **reading)
    write_dataset(dataset, output, form)
    print_summary({"data": str(dataset), "file": str(output)}, as_json)


@app.command()
@reads_data
def generate(
    data: Data,
    output: Output,
    reading: dict[str, Any],
    case: Annotated[
        Literal["a", "b", "one", "size", "instance"],
        typer.Option(
            help="The process: a and b as in the paper; one uniform label; a set of random size "
            "(CTL); instance-dependent."
        ),
    ] = "b",
    rate: Annotated[
        str,
        typer.Option(
            help="Share of irrelevant labels that are excluded (case a: that become candidates): "
            "one number, or one per label separated by commas. Default: 0.1 (case a: 0.9)."
        ),
    ] = "",
    strength: Annotated[
        float | None,
        typer.Option(help="How much the features decide, for case instance; by default 2."),
    ] = None,
    form: Form = "wide",
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Make candidate labels from true ones.

    Example: comes generate scene:train --case b --rate 0.1 --seed 0 -o scene.npz
    """
    from dataclasses import replace

    from comes import generation
    from comes.datasets import check_writable, open_dataset, write_dataset
    from comes.files import check_file_target

    check_writable(output, form)
    check_file_target(output)
    rates = parse_numbers(rate, "--rate")
    dataset = open_dataset(data, **reading)
    X = dataset.known_features() if case == "instance" else None
    candidates = generation.generate(
        case, dataset.known_relevant(), X, rate=rates, strength=strength, seed=seed
    )
    made = replace(dataset, candidates=candidates, asked=None, from_complementary=False)
    write_dataset(made, output, form)
    print_summary({"data": str(made), "case": case, "seed": seed, "file": str(output)}, as_json)


@app.command()
@reads_data
def priors(
    data: Data,
    reading: dict[str, Any],
    method: Annotated[
        str, typer.Option(help="best-bin, bbe, dedpul, km2 or candidate-rate.")
    ] = "best-bin",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="A .csv or .parquet file for 'fit'.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="A .png, .pdf or .svg file: estimated against true priors.")
    ] = None,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Estimate how often each label is relevant, from candidates alone.

    Example: comes priors photos.csv --labels 'has_*' -o priors.csv
    """
    from comes.datasets import check_table_name, open_dataset, write_table
    from comes.files import check_file_target
    from comes.priors import estimate_class_prior, prior_table
    from comes.report import check_plot_name, plot_priors

    if output is not None:
        check_table_name(output)
        check_file_target(output)
    if plot is not None:
        check_plot_name(plot)
        check_file_target(plot)
    dataset = open_dataset(data, **reading)
    names = dataset.label_names
    estimate = estimate_class_prior(
        dataset.known_features(), dataset.candidates_with_names(), method, seed, names
    )
    table = prior_table(estimate, names, dataset.relevant)
    if output is not None:
        write_table(table, output)
    if plot is not None:
        plot_priors(table, plot)
    rows = [{str(name): value for name, value in row.items()} for row in table.to_dict("records")]
    if as_json:
        print_json(rows)
        return
    print_rows(
        [{k: f"{v:.3f}" if isinstance(v, float) else v for k, v in row.items()} for row in rows]
    )
    if "error" in table:
        print(f"mean absolute error: {table['error'].abs().mean():.4f}")


def predict(
    data: Data,
    model: ModelFolder,
    output: Annotated[Path, typer.Option("--output", "-o", help="A .csv or .parquet file.")],
    images: Annotated[
        str, typer.Option(help="The folder or .zip of the images that a table names.")
    ] = "",
    skip_broken: Annotated[
        bool, typer.Option("--skip-broken", help="Leave out images that cannot be read.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Write predicted labels and scores for every row, or every image of a folder or .zip.

    Example: comes predict new.csv --model model/ -o predictions.csv

    Example: comes predict photos/ --model model/ -o predictions.csv
    """
    from comes.datasets import (
        check_table_name,
        prediction_table,
        read_features,
        read_images,
        write_table,
    )
    from comes.estimator import ImageClassifier, load_model
    from comes.files import check_file_target

    check_table_name(output)
    check_file_target(output)
    classifier = load_model(model)
    X: Any
    if isinstance(classifier, ImageClassifier):
        X = read_images(data, images or None, skip_broken)
        items = X.names
    elif images or skip_broken:
        raise ComesError(f"{model} is a model of features; --images and --skip-broken are not.")
    else:
        X, items = read_features(data, classifier.feature_names, classifier.n_features_in_)
    scores = classifier.decision_function(X)
    table = prediction_table(scores, classifier.cut_scores(scores), classifier.label_names_, items)
    write_table(table, output)
    summary = {"rows": len(table), "labels": len(classifier.label_names_), "file": str(output)}
    print_summary(summary, as_json)


app.command()(fit)
app.command()(predict)
app.command()(evaluate)
app.command()(bench)
app.command()(report)
app.add_typer(annotate_app, name="annotate")
