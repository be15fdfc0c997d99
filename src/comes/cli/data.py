"""``comes datasets``: list the data sets that have a name, describe one, convert a file."""

import os
import textwrap
from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from comes.cli.options import (
    WRITTEN,
    Data,
    Form,
    GroupPage,
    ImageSource,
    Json,
    Seed,
    SkipBroken,
    complete_backbone,
    complete_device,
    drop_missing,
    options_under,
    parse_numbers,
    reading_options,
    takes_options,
)
from comes.cli.printing import print_json, print_metrics, print_rows, print_summary, print_warning
from comes.errors import ComesError

if TYPE_CHECKING:
    from comes.datasets import ReadOptions
    from comes.workflows.doctor import Installation
LABELS_SHOWN = 20
COLUMNS_SHOWN = 60


class NameOrCommand(GroupPage):
    """A group whose first word may be a data set: then ``show`` is meant."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that the first word names, or show, unless a command is mistyped."""
        near = args and get_close_matches(args[0], self.commands, cutoff=0.8)
        if args and args[0] not in self.commands and (not near or os.path.exists(args[0])):
            args = ["show", *args]
        return super().resolve_command(ctx, args)


app = typer.Typer(cls=NameOrCommand, rich_markup_mode=None)


@app.callback(invoke_without_command=True)
def datasets(context: typer.Context, as_json: Json = False) -> None:
    """List the data sets that have a name, describe and check one, or convert a file.

    Example: comes datasets

    Example: comes datasets YeastBP

    Example: comes datasets photos.csv --labels 'has_*'
    """
    context.obj = as_json  # comes datasets --json NAME
    if context.invoked_subcommand is not None:
        return
    from comes.workflows.data import list_datasets

    rows = list_datasets()
    if as_json:
        print_json(rows)
        return
    for row in rows:
        can_be_downloaded = row.pop("download")
        row["at_hand"] = (
            "at hand" if row["at_hand"] else "download" if can_be_downloaded else "by hand"
        )
        row["features"] = row["features"] or "images"
        row["rows"] = row["rows"] or "varies"
    print_rows(rows)


@app.command()
@takes_options(reading=reading_options)
def show(context: typer.Context, data: Data, reading: "ReadOptions", as_json: Json = False) -> None:
    """Describe a data set: features, what is known of each label, and what deserves a look.

    Example: comes datasets show photos.csv --labels 'has_*'
    """
    from comes.errors import listed
    from comes.workflows.data import describe_dataset, summarise_dataset

    dataset, findings = describe_dataset(data, reading)
    summary = summarise_dataset(dataset, findings, reading)
    if as_json or context.obj:
        print_json(summary)
        return
    print(dataset)
    columns = summary["columns"]
    features = [row for row in columns if row["column"] in summary["data"]["feature_names"]]
    if any(row["taken_for"] != "number" or row["missing"] for row in features):
        shown = columns[:COLUMNS_SHOWN]
        print_rows([{k: v for k, v in row.items() if k != "features"} for row in shown])
        if len(columns) > COLUMNS_SHOWN:
            print(f"{len(columns) - COLUMNS_SHOWN} more columns; --json lists all.")
    elif columns:
        print(f"Features, all numbers: {listed(summary['data']['feature_names'])}.")
    by_label = summary["labels"]
    print_rows(by_label[:LABELS_SHOWN])
    if len(by_label) > LABELS_SHOWN:
        print(f"{len(by_label) - LABELS_SHOWN} more labels; --json lists all.")
    for finding in findings:
        print(f"- {finding.text}")
    answers = dataset.answers
    if answers is not None and answers.kind == "candidates" and dataset.relevant is not None:
        print("Every relevant label is a candidate.")


@app.command()
@takes_options(reading=reading_options)
def convert(
    data: Data,
    output: Annotated[Path, typer.Argument(help=WRITTEN)],
    reading: "ReadOptions",
    form: Form = "wide",
    as_json: Json = False,
) -> None:
    """Write a data set in another format, named by the ending.

    Example: comes datasets convert answers.json answers.csv --form long
    """
    from comes.workflows.data import convert_dataset

    dataset = convert_dataset(data, output, reading=reading, form=form)
    print_summary({"data": str(dataset), "file": str(output)}, as_json)


LABELS_SHOWN_SPLIT = 30


@takes_options(reading=reading_options)
def split(
    data: Data,
    reading: "ReadOptions",
    test_share: Annotated[float, typer.Option(help="Share of the rows to test with.")] = 0.2,
    groups: Annotated[
        str | None,
        typer.Option(help="A column: rows with the same word there are kept together."),
    ] = None,
    train: Annotated[
        Path | None, typer.Option(help="File of the training rows. Default: NAME-train.")
    ] = None,
    test: Annotated[
        Path | None, typer.Option(help="File of the test rows. Default: NAME-test.")
    ] = None,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Split a file into rows to train on and rows to test with, in the same format.

    Rows of a group, and rows with the same features, are never in both.

    Example: comes split photos.csv --labels 'has_*' --test-share 0.2

    Example: comes split visits.csv --labels diagnosis --groups patient
    """
    from comes.workflows.split import split_data

    found = split_data(
        data,
        test_share=test_share,
        groups=groups,
        seed=seed,
        train=train,
        test=test,
        reading=reading,
    )
    if as_json:
        print_json(found.as_dict())
        return
    files = zip(("train", "test"), (found.train, found.test), found.n_rows, strict=True)
    for (side, path, n_rows), n_groups in zip(files, found.n_groups, strict=True):
        together = f", {n_groups} groups" if groups is not None else ""
        print(f"{side}: {n_rows} rows{together}: {path}")
    if found.n_copies:
        print(f"{found.n_copies} rows repeat the features of another, and are in the same file.")
    print_rows(
        [
            {"label": row["label"]}
            | {
                name: f"{row[f'{name} in train']} + {row[f'{name} in test']}"
                for name in found.counted
            }
            for row in found.labels[:LABELS_SHOWN_SPLIT].to_dict("records")
        ]
    )
    print("Counts of labels are those to train on + those to test with.")
    if len(found.labels) > LABELS_SHOWN_SPLIT:
        print(f"{len(found.labels) - LABELS_SHOWN_SPLIT} more labels; --json lists all.")
    for sentence in found.absent:
        print_warning(sentence)
    if groups is not None and groups != reading.item:
        print(f"{groups!r} is still a column of both files: train without it (--ignore).")


answer_option = options_under("With --case answers")


def answer_options(
    asked_rate: Annotated[
        str | None,
        answer_option(help="Case answers: how often a pair is asked about. Default: 0.1."),
    ] = None,
    no_rate: Annotated[
        str | None,
        answer_option(
            help="Case answers: how often an irrelevant pair is called no. Default: 0.8."
        ),
    ] = None,
    yes_rate: Annotated[
        str | None,
        answer_option(
            help="Case answers: how often a relevant pair is called yes; 0 where only no and maybe "
            "can be said. Default: 0.8."
        ),
    ] = None,
    mistake_rate: Annotated[
        float | None,
        answer_option(help="Case answers: how often a sure answer is wrong. Default: 0."),
    ] = None,
    doubt_strength: Annotated[
        float | None,
        answer_option(
            help="Case answers: how much the features decide which items get maybe. Default: 0."
        ),
    ] = None,
    asked_strength: Annotated[
        float | None,
        answer_option(help="Case answers: how much the features decide what is asked. Default: 0."),
    ] = None,
) -> dict[str, Any]:
    """Return the options of case answers that were given."""
    return drop_missing(
        asked_rate=parse_numbers(asked_rate, "--asked-rate"),
        no_rate=parse_numbers(no_rate, "--no-rate"),
        yes_rate=parse_numbers(yes_rate, "--yes-rate"),
        mistake_rate=mistake_rate,
        doubt_strength=doubt_strength,
        asked_strength=asked_strength,
    )


@takes_options(asked=answer_options, reading=reading_options)
def generate(
    data: Data,
    output: Annotated[Path, typer.Option("--output", "-o", help=WRITTEN)],
    asked: dict[str, Any],
    reading: "ReadOptions",
    case: Annotated[
        Literal["a", "b", "independent", "one", "size", "instance", "answers"],
        typer.Option(
            help="The process: a and b as in the paper; independent draws; one uniform label; a "
            "set of random size (CTL); instance-dependent; yes, no and maybe about pairs that are "
            "asked."
        ),
    ] = "b",
    rate: Annotated[
        str | None,
        typer.Option(
            help="Share of irrelevant labels that are excluded (case a: that become candidates): "
            "one number, or one per label separated by commas. Default: 0.1 (case a: 0.9)."
        ),
    ] = None,
    strength: Annotated[
        float | None,
        typer.Option(help="How much the features decide, for case instance; by default 2."),
    ] = None,
    form: Form = "wide",
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Make candidate labels or answers from true labels.

    Example: comes generate scene:train --case b --rate 0.1 --seed 0 -o scene.npz
    """
    from comes.workflows.data import generate_answers, generate_candidates

    drawn = drop_missing(rate=parse_numbers(rate, "--rate"), strength=strength)
    foreign = drawn if case == "answers" else asked
    for name, value in foreign.items():
        option = name.replace("_", "-")
        raise ComesError(f"case {case} has no {option}; got {value}. Leave it out.")
    written: dict[str, Any] = {"reading": reading, "form": form, "seed": seed}
    if case == "answers":
        made = generate_answers(data, output, **written, **asked)
    else:
        made = generate_candidates(data, output, **written, case=case, **drawn)
    print_summary({"data": str(made), "case": case, "seed": seed, "file": str(output)}, as_json)


network_option = options_under("Network")


def features(
    data: Annotated[
        str, typer.Argument(help="A folder or .zip of images, or a table that names images.")
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="A .npz, .parquet or .npy file. Default: the cache alone."
        ),
    ] = None,
    backbone: Annotated[
        str,
        network_option(
            help="resnet50, timm:NAME or torchvision:NAME.",
            autocompletion=complete_backbone,
        ),
    ] = "resnet50",
    weights: Annotated[
        str, network_option(help="imagenet, or a .safetensors or .pth file.")
    ] = "imagenet",
    image_features: Annotated[
        str, network_option(help="pooled (the last layer), or classes (class probabilities).")
    ] = "pooled",
    image_size: Annotated[
        int | None,
        network_option(help="Height and width of images. Default: the network's own.", min=8),
    ] = None,
    images: ImageSource = None,
    skip_broken: SkipBroken = False,
    part_size: Annotated[
        int | None, network_option(help="Images to process at a time. Default: 256.", min=1)
    ] = None,
    device: Annotated[
        str,
        network_option(
            help="Where to compute: auto, cpu, cuda, ...", autocompletion=complete_device
        ),
    ] = "auto",
    as_json: Json = False,
) -> None:
    """Compute features of images by a frozen network; called again, it goes on where it stopped.

    Example: comes features photos/ -o features.npz

    Example: comes features photos.csv --images photos/ --backbone timm:resnet18 -o features.npz
    """
    from comes.workflows.features import compute_features

    try:
        found = compute_features(
            data,
            output,
            images=images,
            backbone=backbone,
            weights=weights,
            features=image_features,
            image_size=image_size,
            skip_broken=skip_broken,
            part_size=part_size,
            device=device,
        )
    except KeyboardInterrupt:
        raise ComesError(
            "interrupted. What was computed is kept: the same command goes on from there."
        ) from None
    summary: dict[str, object] = {"images": len(found), "features": found.X.shape[1]}
    print_summary(summary | ({"file": str(output)} if output is not None else {}), as_json)


def doctor(as_json: Json = False) -> None:
    """Tell versions, devices, data folders and extras, and what is wrong with them.

    The exit code is 1 if something is broken, and 0 if only extras are missing.

    Example: comes doctor
    """
    from comes.workflows.doctor import check_installation

    found = check_installation()
    if as_json:
        print_json(found.as_dict())
    else:
        _print_installation(found)
    if not found.is_healthy:
        raise typer.Exit(1)


def _print_installation(found: "Installation") -> None:
    """Print problems first, then everything that may help to understand them."""
    for problem in found.problems:
        print(f"Problem: {problem.what}\n  {problem.cure}")
    if found.is_healthy:
        print("Nothing is broken.")
    versions = (f"{name} {version or 'missing'}" for name, version in found.versions.items())
    _print_list("Versions", versions)
    devices = {name: value for name, value in found.devices.items() if name not in ("gpus", "mps")}
    devices["gpus"] = "; ".join(found.devices.get("gpus", ())) or "none that torch sees"
    if found.devices.get("mps"):
        devices["mps"] = "there; give it as --device mps"
    _print_list("Devices", (f"{name} {value}" for name, value in devices.items()))
    for folder in found.folders:
        state = "there" if folder.exists else "not there yet" if folder.is_writable else "missing"
        free = "" if folder.free_gigabytes is None else f", {folder.free_gigabytes:.0f} GB free"
        writable = "" if folder.is_writable else ", cannot be written"
        print(f"Folder {folder.name}: {folder.path}, {state}{writable}{free}")
    if found.datasets is not None:
        _print_list("Data sets at hand", found.datasets or ("none",))
    if found.extras:
        print_rows(
            [
                {"extra": e.name, "gives": e.gives, "": e.command if e.missing else "installed"}
                for e in found.extras
            ]
        )


def _print_list(title: str, parts: Iterable[str]) -> None:
    """Print parts after a title, over as many lines as they need."""
    text = f"{title}: {', '.join(parts)}"
    print(textwrap.fill(text, 100, subsequent_indent="  ", break_on_hyphens=False))


def demo(
    scenes: Annotated[int, typer.Option(min=20, help="Number of training scenes.")] = 8000,
    epochs: Annotated[
        int | None, typer.Option(min=1, help="Epochs, in place of the estimator's own.")
    ] = None,
    table: Annotated[
        Path | None,
        typer.Option(help="Train nothing; write a table of support tickets to try commands on."),
    ] = None,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Learn from answers about embedded digit scenes, and show what each kind of answer adds.

    Example: comes demo
    """
    from comes.demo import run_demo, write_tickets

    if table is not None:
        print_summary(write_tickets(table, seed=seed), as_json)
        return
    rows = run_demo(scenes, epochs, seed)
    if as_json:
        print_json([row._asdict() for row in rows])
        return
    print(
        f"{scenes} scenes of handwritten digits. About one pair of scene and digit in ten somebody "
        "was asked: no, yes\nor maybe. Candidates are what is left if only the no is kept. Metrics "
        "on 2000 new scenes."
    )
    print_metrics([(row.title, row.metrics) for row in rows])
