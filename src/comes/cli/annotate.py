"""The commands of ``comes annotate``."""

import json
import sys
import time
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from typer import Argument, Option

from comes import annotate
from comes.cli.options import (
    CommandPage,
    GroupPage,
    Json,
    Names,
    Seed,
    Text,
    options_under,
    parse_pairs,
    split_names,
)
from comes.cli.printing import print_json, print_prose, print_rows, print_summary
from comes.errors import ComesError

page_option = options_under("The page")
draw_option = options_under("What is asked")
model_option = options_under("Drawn by a model")
Folder = Annotated[Path, Argument(help="Folder of the project.")]
Question = Annotated[
    Text, page_option(help="The question, as 'Does this show {a} {class}?'; {a} is a or an.")
]
Guidelines = Annotated[
    Text, page_option(help="Folder with a text CLASS.md and pictures CLASS-1.jpg for each class.")
]
Language = Annotated[Text, page_option(help="Language of the page: en (default) or de.")]
Images = Annotated[Text, Option(help="Folder or .zip of the images that a table of items names.")]
TextColumn = Annotated[Text, Option(help="Column of the texts. Default: text.", hidden=True)]
Features = Annotated[Text, model_option(help="File with features of the items, to learn from.")]

app = typer.Typer(
    cls=GroupPage,
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Ask people plain questions on a web page, and train on their answers.\n\n"
    "Example: comes annotate init project --items photos/ --classes classes.txt",
)
command = partial(app.command, cls=CommandPage)


@command()
def init(
    folder: Folder,
    items: Annotated[
        str, Option(help="What to ask about: a folder or .zip of images, or a table.")
    ],
    classes: Annotated[
        str, Option(help="File with a class per line, or a table of class, description, question.")
    ],
    images: Images = None,
    text_column: TextColumn = None,
    skip_broken: Annotated[
        bool, Option("--skip-broken", help="Leave out images that cannot be read.", hidden=True)
    ] = False,
    database: Annotated[
        Text, Option(help="Database of a team, postgresql://... Default: a file in the folder.")
    ] = None,
    rate: Annotated[float, draw_option(help="Share of the items asked about each class.")] = 0.1,
    overlap: Annotated[float, draw_option(help="Share of the cards several people answer.")] = 0.0,
    opinions: Annotated[
        int, draw_option(min=2, help="People who answer a card of the overlap.", hidden=True)
    ] = 2,
    by: Annotated[
        Literal["class", "item"],
        draw_option(help="Draw items for each class, or items once with all their classes."),
    ] = "class",
    question: Question = None,
    yes: Annotated[bool, page_option(help="Whether people may answer yes, beside no.")] = True,
    guidelines: Guidelines = None,
    language: Language = None,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Begin a project in a new folder, and draw its questions.

    Example: comes annotate init project --items photos/ --classes classes.txt --rate 0.1
    """
    project = annotate.create_project(
        folder,
        items,
        classes,
        images=images,
        text_column=text_column,
        skip_broken=skip_broken,
        rate=rate,
        seed=seed,
        overlap=overlap,
        opinions=opinions,
        by=by,
        question=question,
        asks_yes=yes,
        language=language or "en",
        guidelines=guidelines,
        database=database,
    )
    n_items, n_classes = len(project.item_names), len(project.class_names)
    done = {
        "items": n_items,
        "classes": n_classes,
        "cards": project.count_cards(),
        "questions_saved": n_items * n_classes - project.count_questions(),
        "question": project.question,
        "next": f"comes annotate serve {folder}",
    }
    print_summary(done, as_json)


@command()
def serve(
    folder: Folder,
    host: Annotated[
        str, Option(help="Address to serve on; all but loopback need a token.")
    ] = "127.0.0.1",
    port: Annotated[int, Option(min=0, max=65535, help="Port; 0 takes a free one.")] = 8000,
    address: Annotated[
        Text, Option(help="Address that people open, if the server is behind a proxy.")
    ] = None,
    token: Annotated[
        bool, Option("--token", help="Ask for a token on loopback, too, as behind a proxy.")
    ] = False,
    new_token: Annotated[
        bool, Option("--new-token", help="Revoke all links, and make new ones.")
    ] = False,
    certificate: Annotated[
        Text, Option(help="Certificate (.pem) with its chain, for https; with --key.", hidden=True)
    ] = None,
    key: Annotated[Text, Option(help="Key (.pem) of the certificate.", hidden=True)] = None,
    proxy: Annotated[
        Names, Option(help="Proxy whose X-Forwarded headers are trusted.", hidden=True)
    ] = None,
) -> None:
    """Serve the page until Ctrl-C; a lead starts the project there if the folder has none.

    Example: comes annotate serve project --host 0.0.0.0 --port 8000
    """
    is_new = not folder.exists() or (folder.is_dir() and not any(folder.iterdir()))
    annotate.serve(
        folder if is_new else annotate.open_project(folder),
        host,
        port,
        address=address,
        needs_token=token,
        new_links=new_token,
        certificate=certificate,
        key=key,
        proxies=split_names(proxy) or (),
    )


@command()
def people(
    folder: Folder,
    leave_out: Annotated[Text, Option(help="Person whose answers no longer count.")] = None,
    take_in: Annotated[Text, Option(help="Person whose answers count again.")] = None,
    revoke: Annotated[
        Text, Option(help="Revoke the links of this name or number, at once; 'all' revokes all.")
    ] = None,
    as_json: Json = False,
) -> None:
    """List who answered and how, and the links that let people in; no server need run.

    Example: comes annotate people project --leave-out Ada

    Example: comes annotate people project --revoke Ada
    """
    project = annotate.open_project(folder)
    from comes.annotate import lead
    from comes.annotate.cards import RefusedError
    from comes.annotate.links import list_links, revoke_links

    for name, is_left_out in ((leave_out, True), (take_in, False)):
        if name is not None:
            try:
                with project.writing() as connection:
                    lead.leave_out(connection, name, is_left_out)
            except RefusedError as refused:
                raise ComesError(f"{refused}.") from None
    if revoke is not None:
        revoke_links(project, None if revoke == "all" else revoke)
    found, links = annotate.summarise(project).people, list_links(project)
    if as_json:
        described = [vars(person) for person in found]
        print_json({"people": described, "links": [_describe_link(link) for link in links]})
        return
    if found:
        print_rows([_describe_person(person) for person in found])
    else:
        print(f"Nobody has answered in {project.name} yet.")
    if links:
        print()
        print_rows([_describe_link(link) for link in links])


def _describe_person(person: Any) -> dict[str, Any]:
    return {
        "name": person.name,
        "answers": person.n_answers,
        "no": person.n_no,
        "cannot tell": person.n_maybe,
        "yes": person.n_yes,
        "seconds": f"{person.seconds:.1f}",
        "agrees": f"{person.agreement:.0%} of {person.n_pairs}" if person.n_pairs else "–",
        "controls": f"{person.n_right} of {person.n_controls}",
        "counts": "left out" if person.is_left_out else "yes",
    }


def _describe_link(link: Any) -> dict[str, Any]:
    return {
        "link": link.number,
        "role": link.role,
        "for": link.label,
        "made": _show_time(link.made_at),
        "revoked": _show_time(link.revoked_at),
    }


def _show_time(moment: float | None) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(moment)) if moment else "–"


@command()
def add(
    folder: Folder,
    items: Annotated[
        Text, Option(help="Add items: a folder or .zip of images, or a table.")
    ] = None,
    new_classes: Annotated[Text, Option(help="Add classes: their names, or a table.")] = None,
    classes: Annotated[Names, Option(help="Ask more about these classes.")] = None,
    skipped: Annotated[bool, Option("--skipped", help="Ask again what was skipped.")] = False,
    cards: Annotated[
        Text, Option(help="Table of item and label to ask about; with --active a number, or 200.")
    ] = None,
    active: Annotated[
        Text, model_option(help="Let a model draw the cards: its folder, or auto to train one.")
    ] = None,
    hints: Annotated[
        Text, model_option(help="Show on open cards what a model thinks: its folder, or auto.")
    ] = None,
    features: Features = None,
    rate: Annotated[
        float | None, Option(help="Share of the items to ask about. Default: as in init, or 0.1.")
    ] = None,
    images: Images = None,
    text_column: TextColumn = None,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Add items, classes or questions: drawn at random, drawn or chosen by a model, or skipped.

    With --hints, cards show what a model thinks; answers to these count less (see the guide).

    Example: comes annotate add project --items more/

    Example: comes annotate add project --classes zebra,okapi --rate 0.05

    Example: comes annotate add project --active auto --cards 200
    """
    names = split_names(classes)
    chosen = cards if active is None else active
    if sum(map(bool, (items, new_classes, names, skipped, chosen, hints))) != 1:
        raise ComesError(
            "say what to add: --items, --new-classes, --classes with --rate, --cards, --active, "
            "--hints or --skipped, one of them."
        )
    if active is not None and not (cards or "200").isdecimal():
        raise ComesError(
            f"--active draws a number of --cards; got {cards!r}. Give one such as 200."
        )
    project = annotate.open_project(folder)
    from comes.annotate.grow import add_chosen_cards, add_random_cards, reopen_skipped_cards

    if active is not None:
        from comes.workflows.annotate import draw_round

        count = int(cards or 200)
        added = draw_round(project, count, model=active, features=features, seed=seed)
    elif hints is not None:
        from comes.workflows.annotate import draw_hints

        added = draw_hints(project, model=hints, features=features, seed=seed)
    elif items is not None:
        more = {"images": images, "text_column": text_column}
        added = annotate.add_items(project, items, **more, rate=rate, seed=seed)
    elif new_classes is not None:
        added = annotate.add_classes(project, new_classes, rate=rate, seed=seed)
    elif names:
        n_added = add_random_cards(project, names, 0.1 if rate is None else rate, seed)
        added = {"cards_added": n_added}
    elif cards is not None:
        added = {"cards_added": add_chosen_cards(project, cards)}
    else:
        added = {"cards_added": reopen_skipped_cards(project)}
    if added.get("left_out") and not as_json:
        print(f"{added['left_out']} names that the project has are left out.", file=sys.stderr)
    print_summary(added, as_json)


@command()
def learn(
    folder: Folder,
    every: Annotated[
        int, Option(min=1, help="Answers to wait for before each round, and cards it draws.")
    ] = 200,
    rounds: Annotated[
        int | None, Option(min=1, help="How many rounds. Default: until Ctrl-C.")
    ] = None,
    features: Features = None,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Draw questions with a model, round by round, beside the server: run it on any machine.

    Each round waits for new answers, trains on all, and draws what is asked next. Ctrl-C ends it;
    started again, it goes on. --json prints a line for each round.

    Example: comes annotate learn project --every 200
    """
    from comes.workflows.annotate import learn_in_rounds

    def tell_wait(missing: int) -> None:
        print(f"waiting for {missing} more answers; Ctrl-C ends it", file=sys.stderr, flush=True)

    project = annotate.open_project(folder)
    told = (
        "round {round}: learned from {learned_from} answers in {seconds:.0f} s, drew "
        "{cards_added} cards of {bits_per_answer:.2f} bits"
    )
    for drawn in learn_in_rounds(
        project, every, rounds=rounds, on_wait=tell_wait, seed=seed, features=features
    ):
        print(json.dumps(drawn) if as_json else told.format(**drawn), flush=True)


@command(name="import")
def import_(
    folder: Folder,
    answers: Annotated[
        Path, Argument(help="A .json of Label Studio, a .jsonl of Prodigy, or a table.")
    ],
    item: Annotated[Text, Option(help="The field or column that names the item.")] = None,
    words: Annotated[
        Names, Option("--answers", help="What its words mean, such as accept=yes,reject=no.")
    ] = None,
    complementary: Annotated[
        bool, Option("--complementary", help="What was ticked is surely irrelevant.", hidden=True)
    ] = False,
    chosen_by_model: Annotated[
        bool,
        Option("--chosen-by-model", help="A model, not chance, chose what was asked.", hidden=True),
    ] = False,
    as_json: Json = False,
) -> None:
    """Take the answers of another tool into a project.

    Example: comes annotate import project export.json --item image
    """
    counts = annotate.import_answers(
        annotate.open_project(folder),
        answers,
        item=item,
        complementary=complementary,
        words=parse_pairs(words, "--answers"),
        chosen_by_model=chosen_by_model,
    )
    print_summary(counts, as_json)


@command()
def export(
    folder: Folder,
    output: Annotated[
        Path, Option("--output", "-o", help="A .parquet, .csv, .xlsx, .npz or .jsonl.")
    ],
    raw: Annotated[bool, Option("--raw", help="Every answer, with person and time.")] = False,
    as_json: Json = False,
) -> None:
    """Write the answers, for comes fit; or all of them as they were given.

    Example: comes annotate export project -o answers.parquet

    Example: comes annotate export project -o raw.csv --raw
    """
    project = annotate.open_project(folder)
    from comes.annotate.exchange import export_raw_answers

    counts = (export_raw_answers if raw else annotate.export_answers)(project, output)
    print_summary({**counts, "file": str(output)}, as_json)


COLUMNS = ("class", "cards", "answered", "excluded", "confirmed", "kappa", "prior_at_most")


@command()
def report(
    folder: Folder,
    output: Annotated[
        Path | None, Option("--output", "-o", help="Also write the report as a .html.")
    ] = None,
    features: Annotated[
        Text, Option(help="File with features of the items, to estimate class priors by.")
    ] = None,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Report per class what was answered, how people agree, and what to ask next.

    Example: comes annotate report project -o report.html --features X.npz
    """
    project = annotate.open_project(folder)
    from comes.workflows.annotate import report_project

    summary, described = report_project(project, output, features=features, seed=seed)
    if as_json:
        print_json(described)
        return
    is_estimated = any(shares["asked"] for shares in described["shares"])
    rows = []
    for row, shares in zip(described["classes"], described["shares"], strict=True):
        shown = {name: row[name] for name in COLUMNS}
        if "class_prior" in row:
            shown["class prior"] = _show_interval(row, "class_prior", "prior")
        if is_estimated:
            shown["yes of all"] = _show_interval(shares, "yes", "yes")
            shown["no of all"] = _show_interval(shares, "no", "no")
        rows.append(shown)
    print_rows(rows, width=130, digits=".2f")
    print(
        f"{summary.n_done} of {summary.n_cards} cards are done; asking about every class of every "
        f"item would take {summary.n_saved} more questions."
    )
    if is_estimated:
        print("Yes and no of all: estimated shares of all items, with 95 % intervals.")
    if summary.to_ask:
        lacking = (
            f"{row.name} ({row.n_excluded}; about {row.more_cards} more answers are needed)"
            if row.can_be_enough
            else f"{row.name} ({row.n_excluded}; {row.more_cards or 'no'} items left to ask about)"
            for row in summary.to_ask
        )
        print_prose(f"Too few exclusions for stable training: {', '.join(lacking)}.")


def _show_interval(row: dict[str, Any], value: str, bound: str) -> str:
    """Return such as "0.30 (0.21 to 0.42)", or a dash for what is not known."""
    if row[value] != row[value]:
        return "–"
    return f"{row[value]:.2f} ({row[f'{bound}_lower']:.2f} to {row[f'{bound}_upper']:.2f})"
