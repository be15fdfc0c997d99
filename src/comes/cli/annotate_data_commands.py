"""``comes annotate``: answers into a project and out of it, and what they amount to."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from comes.cli.annotate_options import Folder
from comes.cli.options import Json, Seed, parse_pairs
from comes.cli.printing import print_json, print_rows, print_summary

if TYPE_CHECKING:
    from comes.jobs import ProjectReport


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
    raw: Annotated[
        bool, typer.Option("--raw", help="Every answer with person, time, seconds and comment.")
    ] = False,
    webhook: Annotated[
        str | None, typer.Option(help="Post the counts to this http address; '' does not.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Write the answers, for comes fit; or all of them as they were given.

    Example: comes annotate export project -o answers.parquet

    Example: comes annotate export project -o raw.csv --raw
    """
    from comes.jobs import export_project

    print_summary(export_project(folder, output, raw=raw, webhook=webhook), as_json)


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
    left_out += ["share_no", "share_maybe", "share_yes", "seconds_left"]
    may_be_empty = ["skipped", "confirmed", "decided", "chosen_by_model", "agreement", "kappa"]
    may_be_empty += ["seconds", "prior_at_least"]
    left_out += [name for name in may_be_empty if not table[name].fillna(0).any()]
    named = {"chosen_by_model": "by model", "agreement": "agree"}
    named |= {"prior_at_least": "prior ≥", "prior_at_most": "prior ≤"}
    shown = table.drop(columns=left_out).rename(columns=named).round(2)
    rows: Any = shown.astype(object).where(shown.notna(), "–").to_dict("records")
    print_rows(rows)
    print(
        f"{summary.n_done} of {summary.n_cards} cards are done; asking about every class of every "
        f"item would take {summary.n_saved} more questions."
    )
    _print_shares(reported)
    if summary.to_ask:
        print("Classes with too few exclusions for stable training:")
    for row in summary.to_ask:
        needs = f"about {row.more_cards} more answers are needed"
        if not row.can_be_enough:
            left = "1 item is" if row.more_cards == 1 else f"{row.more_cards or 'no'} items are"
            needs = f"{left} left to ask about"
        print(f"  {row.name}: {row.n_excluded}; {needs}")


def _print_shares(reported: "ProjectReport") -> None:
    """Print the estimated share of yes and no of each class, if somebody was asked."""
    shares = reported.shares
    if shares is None or not shares["asked"].any():
        return
    print("Share of all items about which people would say so, with 95 % intervals:")
    print_rows(
        [
            {"class": row["class"]}
            | {word: _format_share(row, word) for word in ("yes", "no")}
            | {"asked": row["asked"]}
            for row in shares.to_dict("records")
        ]
    )


def _format_share(row: dict[Any, Any], word: str) -> str:
    share, lower, upper = row[word], row[f"{word}_lower"], row[f"{word}_upper"]
    return "–" if share != share else f"{share:.3f} ({lower:.3f} to {upper:.3f})"
