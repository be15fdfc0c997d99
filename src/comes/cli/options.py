"""The options that commands share, what shells complete, and the pages of help."""

import functools
import inspect
from collections.abc import Callable, Sequence
from functools import partial
from glob import escape, glob
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer.core import TyperCommand, TyperGroup

from comes.errors import ComesError

if TYPE_CHECKING:
    from comes.datasets import ReadOptions
Completer = Callable[[str], list[str]]
# The keys of comes.methods.METHODS, which takes long to import.
METHOD_NAMES = (
    *("comes-hl", "comes-rl", "bce", "ccmn", "gdf", "ctl", "mlcl"),
    *("comes-hl-unbiased", "comrank", "likelihood"),
)


def offer(*values: str) -> Completer:
    """Return what completes to one of these values."""

    def complete(incomplete: str) -> list[str]:
        return [value for value in values if value.startswith(incomplete)]

    return complete


complete_method = offer(*METHOD_NAMES, "auto")
complete_network = offer("mlp", "low_rank", "linear")
complete_backbone = offer("resnet50", "timm:", "torchvision:")
complete_device = offer("auto", "cpu", "cuda")


def complete_data(incomplete: str) -> list[str]:
    """Return the data sets by name that fit, and files; nothing lets the shell offer files."""
    if not incomplete or "/" in incomplete:
        return []
    from comes.datasets import KNOWN

    names = [
        f"{known.name}:{split}" if split else known.name
        for known in KNOWN.values()
        for split in known.rows
    ]
    found = [name for name in names if name.startswith(incomplete)]
    if not found:
        return []
    files = (path + "/" * Path(path).is_dir() for path in glob(f"{escape(incomplete)}*"))
    return [*found, *sorted(files)]


EXAMPLE = "Example: "


def options_under(heading: str) -> Any:
    """Return `typer.Option` for options that help shows under a heading."""
    return partial(typer.Option, rich_help_panel=heading)


class HelpPage:
    """What the pages of commands and groups share."""

    def format_help_text(self, ctx: Any, formatter: Any) -> None:
        """Write what a command does, then its examples, each on a line."""
        paragraphs = inspect.cleandoc(getattr(self, "help", None) or "").split("\n\n")
        examples = [p.removeprefix(EXAMPLE) for p in paragraphs if p.startswith(EXAMPLE)]
        for paragraph in paragraphs:
            if not paragraph.startswith(EXAMPLE):
                formatter.write_paragraph()
                with formatter.indentation():
                    formatter.write_text(paragraph)
        if examples:
            with formatter.section("Examples" if len(examples) > 1 else "Example"):
                for example in examples:
                    formatter.write(f"{'':{formatter.current_indent}}{' '.join(example.split())}\n")

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments, options and commands under their headings."""
        sections: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
        for parameter in self.get_params(ctx):  # type: ignore[attr-defined]
            record = parameter.get_help_record(ctx)
            if record is not None:
                names = record[0].replace("list[str]", "str").replace(" range>", ">")
                heading = getattr(parameter, "rich_help_panel", None) or "Options"
                is_option = parameter.param_type_name == "option"
                heading = heading if is_option else "Arguments"
                sections.setdefault(heading, []).append((names, record[1]))
        for name, command in getattr(self, "commands", {}).items():
            heading = getattr(command, "rich_help_panel", None) or "Commands"
            first = inspect.cleandoc(command.help or "").split("\n\n")[0]  # whole
            sections.setdefault(heading, []).append((name, " ".join(first.split())))
        for heading, records in sections.items():
            if records:
                with formatter.section(heading):
                    formatter.write_dl(records)


class CommandPage(HelpPage, TyperCommand):
    """The help of a command."""


class GroupPage(HelpPage, TyperGroup):
    """The help of a group of commands."""


def show_all_options(context: typer.Context, is_wanted: bool) -> None:
    """Print the help with all options, and end."""
    if is_wanted and not context.resilient_parsing:
        rare: list[Any] = [p for p in context.command.params if getattr(p, "hidden", False)]
        for parameter in rare:
            parameter.hidden = False
        print(context.get_help())
        for parameter in rare:
            parameter.hidden = True
        raise typer.Exit


SHOW_ALL = typer.Option(
    "--help-all",
    is_eager=True,
    callback=show_all_options,
    help="Show every option, also rare ones.",
)


def use_help_pages(*apps: typer.Typer) -> None:
    """Let the commands of apps have such pages."""
    for app in apps:
        for command in app.registered_commands:
            command.cls = CommandPage


def takes_options(**groups: Callable[..., Any]) -> Callable[..., Callable[..., None]]:
    """Add the parameters of functions to the options of a command.

    ``@takes_options(reading=reading_options)`` adds every parameter of `reading_options` to the
    command line; the command gets what the function returns as ``reading``. ``--help-all`` shows
    those that are hidden, too.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        own = inspect.signature(command).parameters
        shared = {name: inspect.signature(make).parameters for name, make in groups.items()}

        @functools.wraps(command)
        def with_options(help_all: bool = False, **values: Any) -> None:
            made = {
                name: make(**{option: values.pop(option) for option in shared[name]})
                for name, make in groups.items()
            }
            command(**values, **made)

        parameters = [p for p in own.values() if p.name not in groups]
        parameters += [p for options in shared.values() for p in options.values()]
        by_keyword = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in parameters]
        kind, of = inspect.Parameter.KEYWORD_ONLY, Annotated[bool, SHOW_ALL]
        by_keyword.append(inspect.Parameter("help_all", kind, default=False, annotation=of))
        with_options.__signature__ = inspect.Signature(by_keyword)  # type: ignore[attr-defined]
        with_options.__annotations__ = {p.name: p.annotation for p in by_keyword}
        return with_options

    return decorate


image_option = options_under("Images")
Data = Annotated[
    str,
    typer.Argument(
        help="A file (.csv, .xlsx, .parquet, .npz, ...), a name, or an annotation project.",
        autocompletion=complete_data,
    ),
]
Form = Annotated[
    Literal["wide", "names", "long"], typer.Option(help="Form of the labels in a written table.")
]
Clean = Annotated[
    Path | None,
    typer.Option(help="A small file with true labels, for better priors and thresholds."),
]
ImageSource = Annotated[
    str | None, image_option(help="The folder or .zip of the images that a table names.")
]
SkipBroken = Annotated[
    bool, image_option("--skip-broken", help="Leave out images that cannot be read.")
]
Json = Annotated[bool, typer.Option("--json", help="Print json.")]
ModelFolder = Annotated[Path, typer.Option("--model", "-m", help="Folder that 'comes fit' wrote.")]
Seed = Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Seed of everything random.")]
WRITTEN = "A table (.csv, .tsv, .csv.gz, .parquet, .xlsx), or a .npz, .mat or .jsonl file."


def drop_missing(**options: Any) -> dict[str, Any]:
    """Return the options that were given: all but those that are None."""
    return {name: value for name, value in options.items() if value is not None}


Texts = str | Sequence[str] | None  # an option that may be repeated


def split_names(text: Texts) -> list[str] | None:
    """Return the names in "sky, sea", or in several such texts; None if it was not given."""
    if text is None or text == [] or text == ():
        return None
    joined = text if isinstance(text, str) else ",".join(text)
    return [name for part in joined.split(",") if (name := part.strip())]


def parse_numbers(text: Texts, option: str) -> float | list[float] | None:
    """Return one number, one per label, or None if the option was not given."""
    parts = split_names(text)
    if parts is None:
        return None
    try:
        numbers = [float(part) for part in parts]
    except ValueError:
        numbers = []
    if not numbers:
        raise ComesError(f"{option} should be a number, or one per label; got {text!r}.")
    return numbers[0] if len(numbers) == 1 else numbers


def parse_pairs(text: Texts, option: str) -> dict[str, str] | None:
    """Return {"1": "yes", "0": "no"} for "1=yes,0=no"; None if the option was not given."""
    names = split_names(text)
    if names is None:
        return None
    shown = text if isinstance(text, str) else ",".join(text or ())
    pairs = [part.partition("=") for part in names]
    if not all(equals for _, equals, _ in pairs):
        raise ComesError(f"{option} should be pairs such as 1=yes,0=no; got {shown!r}.")
    words = [word.strip() for word, _, _ in pairs]
    for word in words:
        if words.count(word) > 1:
            raise ComesError(f"{option} should say once what {word!r} means; got {shown!r}.")
    return {word: state.strip() for word, (_, _, state) in zip(words, pairs, strict=True)}


option = options_under("Reading data")
Names = list[str] | None


def reading_options(
    labels: Annotated[
        Names, option(help="Label columns: one per label, such as 'has_*', or one of label names.")
    ] = None,
    relevant: Annotated[Names, option(help="Columns of the true labels, if there are any.")] = None,
    ignore: Annotated[Names, option(help="Columns that are neither label nor feature.")] = None,
    text: Annotated[Names, option(help="Columns that are texts.")] = None,
    category: Annotated[Names, option(help="Columns that are categories, such as codes.")] = None,
    number: Annotated[Names, option(help="Columns that are numbers.", hidden=True)] = None,
    date: Annotated[Names, option(help="Columns that are dates.", hidden=True)] = None,
    item: Annotated[str | None, option(help="The column that names the items.")] = None,
    long: Annotated[
        Names,
        option(help="Columns of a table of answers. Default: item,label,answer.", hidden=True),
    ] = None,
    answers: Annotated[
        Names, option(help="Meaning of the words of answers: 1=yes,0=no,'-1=not asked'.")
    ] = None,
    features: Annotated[
        str | None, option(help="A file of features with the same items, for a file of labels.")
    ] = None,
    images: Annotated[str | None, option(help="The folder or .zip of the images.")] = None,
    skip_broken: Annotated[
        bool,
        option("--skip-broken", help="Leave out images that cannot be read.", hidden=True),
    ] = False,
    candidates: Annotated[
        bool, option("--candidates", help="The labels are candidates, not true labels.")
    ] = False,
    complementary: Annotated[
        bool, option("--complementary", help="The labels mark what is surely irrelevant.")
    ] = False,
    positives: Annotated[
        bool, option("--positives", help="The labels were ticked; others may be relevant.")
    ] = False,
    separator: Annotated[
        str | None,
        option(help="Between label names in a cell: ';', ',', '|', space, tab, list.", hidden=True),
    ] = None,
    label_names: Annotated[
        Names, option(help="All labels, if a column of names may miss some.", hidden=True)
    ] = None,
    difficult: Annotated[
        str | None,
        option(help="VOC's difficult objects: irrelevant (default) or relevant.", hidden=True),
    ] = None,
    unannotated: Annotated[
        str | None,
        option(help="COCO's images without annotation: drop (default) or keep.", hidden=True),
    ] = None,
) -> "ReadOptions":
    """Return what the columns mean; the parameters are the options."""
    from comes.datasets import ReadOptions

    kinds = {"candidates": candidates, "complementary": complementary, "positives": positives}
    chosen = [kind for kind, is_chosen in kinds.items() if is_chosen]
    if len(chosen) > 1:
        raise ComesError(f"labels are {' or '.join(chosen)}; got both options. Leave one out.")
    checked: dict[str, Any] = {"difficult": difficult, "unannotated": unannotated}
    if chosen:
        checked["labels_are"] = chosen[0]
    return ReadOptions(
        labels=split_names(labels),
        relevant=split_names(relevant),
        ignore=split_names(ignore),
        text=split_names(text),
        category=split_names(category),
        number=split_names(number),
        date=split_names(date),
        item=item,
        long=split_names(long),
        words=parse_pairs(answers, "--answers"),
        features=features,
        images=images,
        skip_broken=skip_broken,
        label_names=split_names(label_names),
        separator=separator,
        **checked,
    )
