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
    Json,
    Seed,
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
    from comes.datasets import check_dataset
    from comes.errors import listed
    from comes.workflows.data import as_dataset, summarise_dataset

    dataset = as_dataset(data, reading)
    findings = check_dataset(dataset)
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


simulate_option = options_under("Simulated labels")
network_option = options_under("Features of pictures")


def simulation_options(
    simulate: Annotated[
        Literal["a", "b", "independent", "one", "size", "instance", "answers"] | None,
        simulate_option(
            help="Draw labels from the true ones: candidates as in the paper (a, b), by "
            "independent draws, with one label less, of random size, or by instance; or answers."
        ),
    ] = None,
    rate: Annotated[
        str | None,
        simulate_option(
            help="Share of irrelevant labels that are excluded (case a: that become candidates): "
            "one number, or one per label. Default: 0.1 (case a: 0.9)."
        ),
    ] = None,
    asked_rate: Annotated[
        str | None, simulate_option(help="Answers: how often a pair is asked about. Default: 0.1.")
    ] = None,
    no_rate: Annotated[
        str | None,
        simulate_option(help="Answers: how often an irrelevant pair is called no. Default: 0.8."),
    ] = None,
    yes_rate: Annotated[
        str | None,
        simulate_option(
            help="Answers: how often a relevant pair is called yes; 0: it cannot be. Default: 0.8."
        ),
    ] = None,
    mistake_rate: Annotated[
        float | None,
        simulate_option(help="Answers: how often a sure answer is wrong. Default: 0.", hidden=True),
    ] = None,
    strength: Annotated[
        float | None,
        simulate_option(
            help="How much the features decide, for case instance. Default: 2.", hidden=True
        ),
    ] = None,
    doubt_strength: Annotated[
        float | None,
        simulate_option(
            help="Answers: how much the features decide what gets maybe. Default: 0.", hidden=True
        ),
    ] = None,
    asked_strength: Annotated[
        float | None,
        simulate_option(
            help="Answers: how much the features decide what is asked. Default: 0.", hidden=True
        ),
    ] = None,
    seed: Seed = 0,
) -> dict[str, Any]:
    """Return the process that draws labels, if there is one, with its options."""
    rates = drop_missing(
        rate=parse_numbers(rate, "--rate"),
        asked_rate=parse_numbers(asked_rate, "--asked-rate"),
        no_rate=parse_numbers(no_rate, "--no-rate"),
        yes_rate=parse_numbers(yes_rate, "--yes-rate"),
        mistake_rate=mistake_rate,
        strength=strength,
        doubt_strength=doubt_strength,
        asked_strength=asked_strength,
    )
    if simulate is None and rates:
        option = next(iter(rates)).replace("_", "-")
        raise ComesError(f"--{option} is of simulated labels. Name the process: --simulate b.")
    return {"simulate": simulate, "seed": seed, **rates}


@app.command()
@takes_options(simulation=simulation_options, reading=reading_options)
def convert(
    data: Data,
    output: Annotated[Path, typer.Option("--output", "-o", help=WRITTEN)],
    simulation: dict[str, Any],
    reading: "ReadOptions",
    form: Form = "wide",
    backbone: Annotated[
        str | None,
        network_option(
            help="resnet50 (default), timm:NAME or torchvision:NAME.",
            autocompletion=complete_backbone,
        ),
    ] = None,
    weights: Annotated[
        str, network_option(help="imagenet, or a .safetensors or .pth file.", hidden=True)
    ] = "imagenet",
    image_size: Annotated[
        int | None,
        network_option(help="Height and width; by default the network's.", min=8, hidden=True),
    ] = None,
    device: Annotated[
        str,
        network_option(
            help="Where to compute: auto, cpu, cuda, ...",
            autocompletion=complete_device,
            hidden=True,
        ),
    ] = "auto",
    as_json: Json = False,
) -> None:
    """Write a data set in another format, named by the ending; pictures become features.

    Pictures are a folder, a .zip, or what a table without labels names (--images). Their features
    are those of a frozen network; called again, the command goes on where it stopped.

    Example: comes datasets convert answers.json -o answers.csv --form long

    Example: comes datasets convert scene:train -o scene.npz --simulate b --rate 0.1

    Example: comes datasets convert photos/ -o features.npz --backbone timm:resnet18
    """
    from comes.workflows.data import are_pictures, convert_dataset, convert_pictures

    if backbone is None and (simulation["simulate"] or not are_pictures(data, reading)):
        made = convert_dataset(data, output, reading=reading, form=form, **simulation)
        done = {"data": str(made), "file": str(output)}
        if simulation["simulate"]:
            done |= {"simulated": simulation["simulate"], "seed": simulation["seed"]}
        print_summary(done, as_json)
        return
    try:
        done = convert_pictures(
            data,
            output,
            reading,
            backbone=backbone or "resnet50",
            weights=weights,
            image_size=image_size,
            device=device,
        )
    except KeyboardInterrupt:
        raise ComesError(
            "interrupted. What was computed is kept: the same command goes on from there."
        ) from None
    print_summary(done, as_json)


@takes_options(reading=reading_options)
def split(
    data: Data,
    reading: "ReadOptions",
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            help="A folder, or NAME of NAME-train and NAME-test. Default: beside DATA.",
        ),
    ] = None,
    test_share: Annotated[float, typer.Option(help="Share of the rows to test with.")] = 0.2,
    groups: Annotated[
        str | None,
        typer.Option(help="A column: rows with the same word there are kept together."),
    ] = None,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Split a file into rows to train on and rows to test with, in the same format.

    Rows of a group, and rows with the same features, are never in both.

    Example: comes split photos.csv --labels 'has_*' --test-share 0.2

    Example: comes split visits.csv --labels diagnosis --groups patient -o parts/
    """
    from comes.workflows.split import split_data

    found = split_data(
        data, output, test_share=test_share, groups=groups, seed=seed, reading=reading
    )
    if as_json:
        print_json(found)
        return
    for side in ("train", "test"):
        part = found[side]
        together = f", {part['groups']} groups" if groups is not None else ""
        print(f"{side}: {part['rows']} rows{together}: {part['file']}")
    if found["copies"]:
        print(f"{found['copies']} rows repeat the features of another, and are in the same file.")
    ending = " in train"
    counted = [name.removesuffix(ending) for name in found["labels"][0] if name.endswith(ending)]
    n_labels = len(found["labels"])
    shown = found["labels"][: 6 if n_labels <= 6 else 5]
    print_rows(
        [
            {"train + test": row["label"]}
            | {name: f"{row[f'{name} in train']} + {row[f'{name} in test']}" for name in counted}
            for row in shown
        ]
    )
    if n_labels > len(shown):
        print(f"{n_labels - len(shown)} more labels; --json lists all.")
    for sentence in found["absent"]:
        print_warning(sentence)
    if groups is not None and groups != reading.item:
        print(f"{groups!r} is still a column of both files: train without it (--ignore).")


def doctor(as_json: Json = False) -> None:
    """Tell versions, devices, data folders and extras, and what is wrong with them.

    The exit code is 1 if something is broken, and 0 if only extras are missing.

    Example: comes doctor
    """
    from comes.workflows.doctor import check_installation

    found = check_installation()
    if as_json:
        print_json(found)
    else:
        _print_installation(found)
    if found["problems"]:
        raise typer.Exit(1)


def _print_installation(found: dict[str, Any]) -> None:
    """Print problems first, then everything that may help to understand them."""
    for problem in found["problems"]:
        print(f"Problem: {problem['what']}\n  {problem['cure']}")
    if not found["problems"]:
        print("Nothing is broken.")
    devices = dict(found["devices"])
    devices["gpus"] = "; ".join(devices.get("gpus", ())) or "none that torch sees"
    if devices.pop("mps", False):
        devices["mps"] = "there; give it as --device mps"
    _print_list("Versions", (f"{k} {v or 'missing'}" for k, v in found["versions"].items()))
    _print_list("Devices", (f"{name} {value}" for name, value in devices.items()))
    for folder in found["folders"]:
        state = "there" if folder["exists"] else "not there"
        state += "" if folder["is_writable"] else ", cannot be written"
        free = f"{folder['free_gigabytes']:.0f} GB free"
        print(f"Folder {folder['name']}: {folder['path']}, {state}, {free}")
    if found["datasets"] is not None:
        _print_list("Data sets at hand", found["datasets"] or ("none",))
    installed = [extra["name"] for extra in found["extras"] if extra["installed"]]
    if installed:
        _print_list("Extras", installed)
    for extra in found["extras"]:
        if not extra["installed"]:
            print(f"Not installed: {extra['gives']}: {extra['command']}")


def _print_list(title: str, parts: Iterable[str]) -> None:
    """Print parts after a title, over as many lines as they need."""
    text = f"{title}: {', '.join(parts)}"
    print(textwrap.fill(text, 100, subsequent_indent="  ", break_on_hyphens=False))


def demo(
    table: Annotated[
        Path | None,
        typer.Option(help="Train nothing; write the table of tickets, to try commands on."),
    ] = None,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Learn from answers about support tickets, and show what is lost without them.

    Example: comes demo

    Example: comes demo --table tickets.csv
    """
    from comes.workflows.demo import run_demo, write_tickets

    if table is not None:
        print_summary(write_tickets(table, seed=seed), as_json)
        return
    rows = run_demo(seed=seed)
    if as_json:
        print_json(rows)
        return
    print(
        "3000 support tickets with 6 topics. Of the pairs of ticket and topic, people were asked "
        "about one in\nfour: yes, no or maybe. Candidates are what nobody said no to. Metrics on a "
        "third, held out."
    )
    print_metrics([(row["title"], row["metrics"]) for row in rows])
