"""``comes annotate``: what goes into a project and comes out of it, and the demonstration."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from comes.cli.annotate_options import Folder, Port, check_extra
from comes.cli.options import Json, Seed, parse_pairs, split_names
from comes.cli.printing import print_json, print_rows, print_summary

if TYPE_CHECKING:
    from comes.demo import Circle
    from comes.jobs import ProjectReport


def add(
    folder: Folder,
    classes: Annotated[
        str | None, typer.Option(help="Classes to ask more about, separated by commas.")
    ] = None,
    rate: Annotated[
        float, typer.Option(help="Share of all items, drawn among those not asked.")
    ] = 0.1,
    cards: Annotated[
        str | None, typer.Option(help="Instead: a table of item and label that a model chose.")
    ] = None,
    skipped: Annotated[
        bool, typer.Option("--skipped", help="Instead: ask again what people skipped.")
    ] = False,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Add questions: more items for some classes, what a model chose, or what was skipped.

    Example: comes annotate add project --classes zebra,okapi --rate 0.05

    Example: comes annotate add project --cards uncertain.csv
    """
    check_extra()
    from comes.jobs import add_questions

    names = split_names(classes)
    added = add_questions(folder, classes=names, rate=rate, cards=cards, skipped=skipped, seed=seed)
    print_summary({"cards_added": added}, as_json)


def import_(
    folder: Folder,
    answers: Annotated[Path, typer.Argument(help="Label Studio .json, Prodigy .jsonl, a table.")],
    item: Annotated[str | None, typer.Option(help="The field that names the item.")] = None,
    complementary: Annotated[
        bool, typer.Option("--complementary", help="What was ticked is surely irrelevant.")
    ] = False,
    words: Annotated[
        str | None,
        typer.Option("--answers", help="What its words mean, such as accept=yes,reject=no."),
    ] = None,
    chosen_by_model: Annotated[
        bool,
        typer.Option("--chosen-by-model", help="A model, not chance, chose what was asked."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Take the answers of another tool into a project.

    Example: comes annotate import project export.json --item image
    """
    check_extra()
    from comes.annotate import import_answers, open_project

    counts = import_answers(
        open_project(folder),
        answers,
        item=item,
        complementary=complementary,
        words=parse_pairs(words, "--answers"),
        chosen_by_model=chosen_by_model,
    )
    print_summary(counts, as_json)


def export(
    folder: Folder,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="A .parquet, .csv, .npz or .jsonl file.")
    ],
    as_json: Json = False,
) -> None:
    """Write the answers, for comes fit.

    Example: comes annotate export project -o answers.parquet
    """
    check_extra()
    from comes.annotate import export_answers, open_project

    print_summary(export_answers(open_project(folder), output) | {"file": str(output)}, as_json)


def report(
    folder: Folder,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Also write a page (.html).")
    ] = None,
    features: Annotated[
        str | None, typer.Option(help="Features of the items, to estimate class priors.")
    ] = None,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Report per class what was answered, how people agree, and what to ask next.

    Example: comes annotate report project -o report.html --features X.npz
    """
    check_extra()
    from comes.jobs import report_project

    reported = report_project(folder, output, features=features, seed=seed)
    if as_json:
        print_json(reported.as_dict())
    else:
        _print_report(reported)


def _print_report(reported: "ProjectReport") -> None:
    """Print a row per class, without the columns that have nothing to show."""
    table, summary = reported.table(), reported.summary
    left_out = ["asked", "torn", "pairs", "kappa_lower", "kappa_upper", "more_cards"]
    left_out += ["share_no", "share_maybe", "seconds_left"]
    may_be_empty = ["skipped", "confirmed", "decided", "chosen_by_model", "agreement", "kappa"]
    may_be_empty += ["seconds", "share_yes", "prior_at_least"]
    left_out += [name for name in may_be_empty if not table[name].fillna(0).any()]
    named = {"chosen_by_model": "by model", "share_yes": "yes"}
    named |= {"prior_at_least": "prior ≥", "prior_at_most": "prior ≤"}
    shown = table.drop(columns=left_out).rename(columns=named).round(2)
    rows: Any = shown.astype(object).where(shown.notna(), "–").to_dict("records")
    print_rows(rows)
    print(
        f"{summary.n_done} of {summary.n_cards} cards are done; asking about every class of every "
        f"item would take {summary.n_saved} more questions."
    )
    for row in summary.to_ask:
        needs = f"about {row.more_cards} more answers are needed"
        if not row.can_be_enough:
            needs = f"the {row.more_cards} remaining items will hardly be enough"
        few = "exclusion is" if row.n_excluded == 1 else "exclusions are"
        print(f"{row.name}: {row.n_excluded} {few} few; {needs}.")


def demo(
    robot: Annotated[
        int, typer.Option(min=0, help="Simulated annotators; 0 serves the page for you.")
    ] = 0,
    scenes: Annotated[
        int | None, typer.Option(min=20, help="Drawn scenes: 300; for robots digits: 6000.")
    ] = None,
    epochs: Annotated[
        int | None, typer.Option(min=1, help="In place of the estimator's own.")
    ] = None,
    port: Port = 8000,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Annotate drawn scenes yourself, or let robots annotate digits and train on their answers.

    Example: comes annotate demo

    Example: comes annotate demo --robot 10
    """
    check_extra()
    from comes.demo import annotate_by_robots, serve_scenes

    if not robot:
        ending = "(Ctrl-C ends it, and forgets the answers)"
        serve_scenes(
            scenes or 300, port, seed, lambda address: print(f"{address}/  {ending}", flush=True)
        )
        return
    circle = annotate_by_robots(
        robot, scenes or 6000, epochs, seed, tell=lambda sentence: print(sentence, file=sys.stderr)
    )
    if as_json:
        print_json(circle._asdict() | {"learned": [row._asdict() for row in circle.learned]})
    else:
        _print_circle(circle)


def _print_circle(circle: "Circle") -> None:
    """Print what robots said, and what was learned from it."""
    from comes.methods import METHODS

    said = ", ".join(f"{count} {word}" for word, count in circle.said.items())
    print(
        f"{circle.robots} robots answered {circle.answers} cards over HTTP in "
        f"{circle.seconds:.1f} s, {circle.answers / circle.seconds:.0f} a second: {said}. "
        f"Class priors estimated from them are off by {circle.prior_error:.3f} on average."
    )
    given = {"candidates": "candidates alone, without who was asked"}
    print_rows(
        [
            {
                "method": METHODS[row.method].title,
                "trained on": given.get(row.given, "answers of the robots"),
                "average precision ↑": f"{row.average_precision:.3f}",
                "seconds": f"{row.seconds:.0f}",
            }
            for row in circle.learned
        ]
    )
