"""The options that commands share, what shells complete, and the pages of help."""

import functools
import inspect
import re
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
# The keys of comes.methods.METHODS, which takes long to import.
METHOD_NAMES = (
    *("comes-hl", "comes-rl", "bce", "ccmn", "gdf", "ctl", "mlcl"),
    *("comes-hl-unbiased", "comrank", "likelihood"),
)


def offer(*values: str) -> Callable[[str], list[str]]:
    """Return what completes to one of these values."""
    return lambda incomplete: [value for value in values if value.startswith(incomplete)]


complete_method = offer(*METHOD_NAMES, "auto")
complete_network = offer("wide_and_deep", "blend", "mlp", "low_rank", "linear")
complete_backbone = offer("resnet50", "timm:", "torchvision:")
complete_device = offer("auto", "cpu", "cuda")


def complete_data(incomplete: str) -> list[str]:
    """Return the data sets by name that fit, and files; nothing lets the shell offer files."""
    if not incomplete or "/" in incomplete:
        return []
    from comes.datasets import KNOWN

    found = [
        name
        for known in KNOWN.values()
        for name in (f"{known.name}:{split}" if split else known.name for split in known.rows)
        if name.startswith(incomplete)
    ]
    files = (path + "/" * Path(path).is_dir() for path in glob(f"{escape(incomplete)}*"))
    return [*found, *sorted(files)] if found else []


OPTION = re.compile(r"--[a-z][a-z-]*")
BRACKETS = re.compile(r" ?\(([^()]*--[a-z][^()]*)\)")
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
                heading = heading if parameter.param_type_name == "option" else "Arguments"
                sections.setdefault(heading, []).append((names, record[1]))
        if any(getattr(parameter, "hidden", False) for parameter in ctx.command.params):
            sections["Options"].append(("--help-all", "Show every option, also rare ones."))
        for name, command in getattr(self, "commands", {}).items():
            heading = getattr(command, "rich_help_panel", None) or "Commands"
            first = inspect.cleandoc(command.help or "").split("\n\n")[0]  # whole
            sections.setdefault(heading, []).append((name, " ".join(first.split())))
        for heading, records in sections.items():
            if records:
                with formatter.section(heading):
                    formatter.write_dl(records)


class CommandPage(HelpPage, TyperCommand):
    """A command; ``--help-all`` shows its hidden options, too."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Take the arguments apart."""
        if "--help-all" in args:
            for parameter in self.params:
                parameter.hidden = False  # type: ignore[attr-defined]
            args = ["--help"]
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run the command; its errors lose brackets with options that it does not have.

        Workflows serve several commands and notebooks: their messages name all that may help.
        """
        known = {name for parameter in self.params for name in parameter.opts}

        def keep(found: re.Match[str]) -> str:
            return found[0] if set(OPTION.findall(found[1])) <= known else ""

        try:
            return super().invoke(ctx)
        except ComesError as error:
            raise ComesError(BRACKETS.sub(keep, str(error))) from error


class GroupPage(HelpPage, TyperGroup):
    """A group of commands."""


def takes_options(**groups: Callable[..., Any]) -> Callable[..., Callable[..., None]]:
    """Add the parameters of functions to the options of a command.

    ``@takes_options(reading=reading_options)`` adds every parameter of `reading_options` to the
    command line; the command gets what the function returns as ``reading``.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        own = inspect.signature(command).parameters
        shared = {name: inspect.signature(make).parameters for name, make in groups.items()}

        @functools.wraps(command)
        def with_options(**values: Any) -> None:
            made = {
                name: make(**{option: values.pop(option) for option in shared[name]})
                for name, make in groups.items()
            }
            command(**values, **made)

        parameters = [p for p in own.values() if p.name not in groups]
        parameters += [p for options in shared.values() for p in options.values()]
        by_keyword = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in parameters]
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


def split_names(texts: Texts) -> list[str] | None:
    """Return the names in "sky, sea", or in several such texts; None if it was not given."""
    if not texts and texts != "":
        return None
    joined = texts if isinstance(texts, str) else ",".join(texts or ())
    return [name for part in joined.split(",") if (name := part.strip())]


def parse_numbers(texts: Texts, option: str) -> float | list[float] | None:
    """Return one number, one per label, or None if the option was not given."""
    parts = split_names(texts)
    if parts is None:
        return None
    try:
        first, *others = map(float, parts)
    except ValueError:
        message = f"{option} should be a number, or one per label; got {texts!r}."
        raise ComesError(message) from None
    return [first, *others] if others else first


def parse_pairs(texts: Texts, option: str) -> dict[str, str] | None:
    """Return {"1": "yes", "0": "no"} for "1=yes,0=no"; None if the option was not given."""
    names = split_names(texts)
    if names is None:
        return None
    found: dict[str, str] = {}
    shown = repr(",".join(names))
    for word, equals, state in (name.partition("=") for name in names):
        if not equals:
            raise ComesError(f"{option} should be pairs such as 1=yes,0=no; got {shown}.")
        if found.setdefault(word.strip(), state.strip()) != state.strip():
            raise ComesError(f"{option} should say once what {word.strip()!r} means; got {shown}.")
    return found


option = options_under("Reading data")
rare = partial(option, hidden=True)
Text = str | None
Names = list[str] | None


def reading_options(
    labels: Annotated[
        Names, option(help="Label columns: one per label, such as 'has_*', or one of label names.")
    ] = None,
    relevant: Annotated[Names, option(help="Columns of the true labels, if there are any.")] = None,
    ignore: Annotated[Names, option(help="Columns that are neither label nor feature.")] = None,
    text: Annotated[Names, option(help="Columns that are texts.")] = None,
    category: Annotated[Names, option(help="Columns that are categories, such as codes.")] = None,
    number: Annotated[Names, rare(help="Columns that are numbers.")] = None,
    date: Annotated[Names, rare(help="Columns that are dates.")] = None,
    item: Annotated[Text, option(help="The column that names the items.")] = None,
    long: Annotated[
        Names, rare(help="Columns of a table of answers. Default: item,label,answer.")
    ] = None,
    answers: Annotated[
        Names, option(help="Meaning of the words of answers: 1=yes,0=no,'-1=not asked'.")
    ] = None,
    features: Annotated[
        Text, option(help="A file of features with the same items, for a file of labels.")
    ] = None,
    images: Annotated[Text, option(help="The folder or .zip of the images.")] = None,
    skip_broken: Annotated[
        bool, rare("--skip-broken", help="Leave out images that cannot be read.")
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
        Text, rare(help="Between label names in a cell: ';', ',', '|', space, tab, list.")
    ] = None,
    label_names: Annotated[
        Names, rare(help="All labels, if a column of names may miss some.")
    ] = None,
    difficult: Annotated[
        Text, rare(help="VOC's difficult objects: irrelevant (default) or relevant.")
    ] = None,
    unannotated: Annotated[
        Text, rare(help="COCO's images without annotation: drop (default) or keep.")
    ] = None,
) -> "ReadOptions":
    """Return what the columns mean; the parameters are the options."""
    from comes.datasets import ReadOptions

    kinds = {"candidates": candidates, "complementary": complementary, "positives": positives}
    chosen = [kind for kind, is_chosen in kinds.items() if is_chosen]
    if len(chosen) > 1:
        raise ComesError(f"labels are {' or '.join(chosen)}; got both options. Leave one out.")
    words: dict[str, Any] = {"difficult": difficult, "unannotated": unannotated}
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
        labels_are=chosen[0] if chosen else None,  # type: ignore[arg-type]
        label_names=split_names(label_names),
        separator=separator,
        features=features,
        images=images,
        skip_broken=skip_broken,
        **words,
    )
