"""``comes datasets``: list the data sets that have a name, describe one, convert a file."""

import os
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from comes.cli.help_pages import GroupPage
from comes.cli.option_groups import takes_options
from comes.cli.options import WRITTEN, Data, Form, Json
from comes.cli.printing import print_json, print_rows, print_summary
from comes.cli.reading_options import reading_options

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
    from comes.jobs import list_datasets

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
    from comes.jobs import describe_dataset, summarise_dataset

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
    from comes.jobs import convert_dataset

    dataset = convert_dataset(data, output, reading=reading, form=form)
    print_summary({"data": str(dataset), "file": str(output)}, as_json)
