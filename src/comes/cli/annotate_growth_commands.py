"""``comes annotate``: a project that grows, by items, classes, and what a model draws."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from comes.cli.annotate_options import Folder
from comes.cli.help_pages import options_under
from comes.cli.options import Json, Seed, split_names
from comes.cli.printing import print_summary
from comes.errors import ComesError

if TYPE_CHECKING:
    from comes.jobs import ActiveRound

model_option = options_under("Drawn by a model")


def add(
    folder: Folder,
    items: Annotated[
        str | None, typer.Option(help="More items: a folder or .zip of images, or a table.")
    ] = None,
    new_classes: Annotated[
        str | None, typer.Option(help="Instead: more classes, a name per line or a table.")
    ] = None,
    classes: Annotated[
        str | None, typer.Option(help="Instead: classes to ask more about, separated by commas.")
    ] = None,
    rate: Annotated[
        float | None, typer.Option(help="Share of the items; by default the project's, or 0.1.")
    ] = None,
    images: Annotated[
        str | None, typer.Option(help="The folder or .zip of the images, if --items names them.")
    ] = None,
    text_column: Annotated[
        str | None, typer.Option(help="The column of the texts in --items; by default text.")
    ] = None,
    active: Annotated[
        str | None, model_option(help="Instead: what a model draws: its folder, or auto.")
    ] = None,
    cards: Annotated[
        str | None,
        model_option(help="Instead: a table of item and label; for --active a number, or 200."),
    ] = None,
    features: Annotated[
        str | None, model_option(help="Features of the items, for --active.")
    ] = None,
    floor: Annotated[
        float, model_option(help="Share of --active that is drawn as if there were no model.")
    ] = 0.2,
    skipped: Annotated[
        bool, typer.Option("--skipped", help="Instead: ask again what people skipped.")
    ] = False,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Add items, classes or questions: drawn at random, drawn or chosen by a model, or skipped.

    Example: comes annotate add project --items more/

    Example: comes annotate add project --classes zebra,okapi --rate 0.05

    Example: comes annotate add project --active auto --cards 200
    """
    if active is not None:
        _add_active(folder, active, cards, features, floor, seed, as_json)
        return
    from comes.annotate import ItemSource
    from comes.jobs import add_questions

    added = add_questions(
        folder,
        classes=split_names(classes),
        items=None if items is None else ItemSource(items, images, text_column),
        new_classes=new_classes,
        rate=rate,
        cards=cards,
        skipped=skipped,
        seed=seed,
    )
    if added.get("left_out") and not as_json:
        print(f"{added['left_out']} names that the project has are left out.", file=sys.stderr)
    print_summary(added, as_json)


def _add_active(
    folder: Path,
    model: str,
    cards: str | None,
    features: str | None,
    floor: float,
    seed: int,
    as_json: bool,
) -> None:
    """Let a model draw questions, with known probabilities."""
    from comes.jobs import draw_round

    count = cards or "200"
    if not count.isdecimal():
        raise ComesError(
            f"--active draws a number of --cards; got {count!r}. Give one such as 200."
        )
    drawn = draw_round(folder, int(count), model=model, features=features, floor=floor, seed=seed)
    print_summary(_describe_round(drawn), as_json)


def _describe_round(drawn: "ActiveRound") -> dict[str, Any]:
    return {
        "round": drawn.round,
        "learned_from": drawn.answers,
        "cards_added": drawn.cards,
        "bits_per_answer": round(drawn.bits, 3),
        "seconds": round(drawn.seconds, 1),
    }


def learn(
    folder: Folder,
    every: Annotated[
        int, typer.Option(min=1, help="New answers before each round, and questions in it.")
    ] = 200,
    rounds: Annotated[
        int | None, typer.Option(min=1, help="How many rounds; by default until Ctrl-C.")
    ] = None,
    model: Annotated[str, typer.Option(help="Folder of a model; auto trains one.")] = "auto",
    features: Annotated[str | None, typer.Option(help="Features of the items.")] = None,
    floor: Annotated[
        float, typer.Option(help="Share of the questions drawn as if there were no model.")
    ] = 0.2,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Draw questions with a model, round by round, beside the server: run it on any machine.

    Each round waits for new answers, trains on all, and draws what is asked next. Ctrl-C ends it;
    started again, it goes on. --json prints a line for each round.

    Example: comes annotate learn project --every 200
    """
    from comes.jobs import learn_in_rounds

    def tell(drawn: "ActiveRound") -> None:
        if as_json:
            print(json.dumps(_describe_round(drawn)), flush=True)
            return
        print(
            f"round {drawn.round}: learned from {drawn.answers} answers in {drawn.seconds:.0f} s, "
            f"drew {drawn.cards} cards of {drawn.bits:.2f} bits",
            flush=True,
        )

    def tell_wait(missing: int) -> None:
        print(f"waiting for {missing} more answers; Ctrl-C ends it", file=sys.stderr, flush=True)

    learn_in_rounds(
        folder,
        every,
        rounds=rounds,
        model=model,
        features=features,
        floor=floor,
        seed=seed,
        on_round=tell,
        on_wait=tell_wait,
    )
