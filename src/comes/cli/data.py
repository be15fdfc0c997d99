"""Commands about data and the installation: datasets, split, demo, doctor."""

import os
from collections.abc import Sequence
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer import Option

from comes.cli.options import (
    WRITTEN,
    CommandPage,
    Data,
    Form,
    GroupPage,
    Json,
    Names,
    Seed,
    Text,
    complete_backbone,
    complete_device,
    options_under,
    parse_numbers,
    reading_options,
    takes_options,
)
from comes.cli.printing import print_json, print_prose, print_rows, print_summary, print_warning
from comes.errors import ComesError

if TYPE_CHECKING:
    from comes.datasets import ReadOptions


class NameOrCommand(GroupPage):
    """A group whose first word may be a data set: then ``show`` is meant."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that the first word names, or show, unless a command is mistyped."""
        near = args and get_close_matches(args[0], self.commands, cutoff=0.8)
        if args and args[0] not in self.commands and (not near or os.path.exists(args[0])):
            args = ["show", *args]
        return super().resolve_command(ctx, args)


app = typer.Typer(cls=NameOrCommand, rich_markup_mode=None)
command = partial(app.command, cls=CommandPage)


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


@command()
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
    names, columns = summary["data"]["feature_names"], summary["columns"]
    features = [row for row in columns if row["column"] in names]
    if any(row["taken_for"] != "number" or row["missing"] for row in features):
        shown = [{k: v for k, v in row.items() if k != "features"} for row in columns]
        _print_first(shown, 60, "columns")
    elif columns:
        print(f"Features, all numbers: {listed(names)}.")
    _print_first(summary["labels"], 20, "labels")
    for finding in findings:
        print(f"- {finding.text}")


def _print_first(rows: Sequence[dict[str, Any]], n: int, what: str) -> None:
    """Print the first rows, and how many more there are."""
    print_rows(rows[:n])
    if len(rows) > n:
        print(f"{len(rows) - n} more {what}; --json lists all.")


simulate_option = options_under("Simulated labels")
network_option = options_under("Features of pictures")


@command()
@takes_options(reading=reading_options)
def convert(
    data: Data,
    output: Annotated[Path, Option("--output", "-o", help=WRITTEN)],
    reading: "ReadOptions",
    form: Form = "wide",
    simulate: Annotated[
        Literal["a", "b", "independent", "one", "size", "instance", "answers"] | None,
        simulate_option(
            help="Draw labels from the true ones: candidates as in the paper (a, b), by "
            "independent draws, with one label less, of random size, or by instance; or answers."
        ),
    ] = None,
    rate: Annotated[
        Text,
        simulate_option(
            help="Share of irrelevant labels that are excluded (case a: that become candidates): "
            "one number, or one per label. Default: 0.1 (case a: 0.9)."
        ),
    ] = None,
    settings: Annotated[
        Names,
        simulate_option(
            "--set",
            help="Any other parameter, NAME=VALUE: strength of case instance; of answers "
            "asked_rate, no_rate, yes_rate, mistake_rate, doubt_strength, asked_strength.",
        ),
    ] = None,
    backbone: Annotated[
        Text,
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
    seed: Seed = 0,
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

    rates = {} if rate is None else {"rate": parse_numbers(rate, "--rate")}
    for text in settings or ():
        name, _, value = (part.strip() for part in text.partition("="))
        if not name.endswith(("rate", "strength")):
            raise ComesError(f"--set takes a rate or strength, as asked_rate=0.2; got {text!r}.")
        rates[name] = parse_numbers(value, f"--set {name}")
    if simulate is None and rates:
        raise ComesError(
            "--rate and --set are for simulated labels. Add --simulate b, for example."
        )
    if simulate is not None and backbone is not None:
        raise ComesError(
            "--simulate draws labels, --backbone makes features of pictures: two files. Leave one "
            "out, and call the command again with the other."
        )
    if simulate or (backbone is None and not are_pictures(data, reading)):
        made = convert_dataset(
            data, output, reading=reading, form=form, simulate=simulate, seed=seed, **rates
        )
        done = {"data": str(made), "file": str(output)}
        print_summary(done | ({"simulated": simulate, "seed": seed} if simulate else {}), as_json)
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
        Text, Option("--output", "-o", help="A folder, or NAME of NAME-train and NAME-test.")
    ] = None,
    test_share: Annotated[float, Option(help="Share of the rows to test with.")] = 0.2,
    groups: Annotated[
        Text, Option(help="A column: rows with the same word there are kept together.")
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
    names = [name.removesuffix(" in test") for name in found["labels"][0] if " in test" in name]
    rows = [
        {"train + test": row["label"]}
        | {name: f"{row[f'{name} in train']} + {row[f'{name} in test']}" for name in names}
        for row in found["labels"]
    ]
    _print_first(rows, 6, "labels")
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
    problems = found["problems"]
    if as_json:
        print_json(found)
        raise typer.Exit(bool(problems))
    for problem in problems:
        print(f"Problem: {problem['what']}\n  {problem['cure']}")
    if not problems:
        print("Nothing is broken.")
    gpus = "; ".join(found["devices"].get("gpus", ())) or "none that torch sees"
    devices = found["devices"] | {"gpus": gpus}
    folders = {
        one["name"]: f"{one['path']} ({one['free_gigabytes']:.0f} GB free)"
        for one in found["folders"]
    }
    lists = {"Versions": found["versions"], "Devices": devices, "Folders": folders}
    for title, facts in lists.items():
        print_prose(
            f"{title}: "
            + ", ".join(f"{k} {'missing' if v is None else v}" for k, v in facts.items())
        )
    if found["datasets"] is not None:
        print_prose(f"Data sets at hand: {', '.join(found['datasets']) or 'none'}")
    for extra in found["extras"]:
        if not extra["installed"]:
            print(f"Not installed: {extra['gives']}: {extra['command']}")
    raise typer.Exit(bool(problems))


def demo(
    table: Annotated[
        Path | None, Option(help="Train nothing; write the table of tickets, to try commands on.")
    ] = None,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Learn from answers about support tickets, and show what is lost without them.

    Example: comes demo

    Example: comes demo --table tickets.csv
    """
    from comes.metrics import METRICS
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
    titles = {k: f"{m.title} {'↑' if m.higher_is_better else '↓'}" for k, m in METRICS.items()}
    print_rows(
        [
            {"": row["title"]} | {title: row["metrics"][k] for k, title in titles.items()}
            for row in rows
        ]
    )
