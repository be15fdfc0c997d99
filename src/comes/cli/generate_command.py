"""``comes generate``: make candidate labels or answers from true labels."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from comes.cli.help_pages import options_under
from comes.cli.option_groups import takes_options
from comes.cli.options import WRITTEN, Data, Form, Json, Seed, drop_missing, parse_numbers
from comes.cli.printing import print_summary
from comes.cli.reading_options import reading_options
from comes.errors import ComesError

if TYPE_CHECKING:
    from comes.datasets import ReadOptions

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
    from comes.jobs import generate_answers, generate_candidates

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
