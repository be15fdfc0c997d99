"""The commands of ``comes annotate``."""

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from comes.cli.options import (
    GroupPage,
    Json,
    Seed,
    options_under,
    parse_pairs,
    split_names,
    takes_options,
)
from comes.cli.printing import (
    print_json,
    print_prose,
    print_rounded,
    print_rows,
    print_summary,
)
from comes.errors import ComesError

if TYPE_CHECKING:
    from comes.annotate import Summary
page_option = options_under("The page")
draw_option = options_under("What is asked")
model_option = options_under("Drawn by a model")
Folder = Annotated[Path, typer.Argument(help="Folder of the project.")]
Question = Annotated[
    str | None, page_option(help="'Does this show {class}?'; {a} is a or an, as needed.")
]
Guidelines = Annotated[
    str | None, page_option(help="Folder with CLASS.md and pictures CLASS-1.jpg.")
]
Language = Annotated[str | None, page_option(help="Language of the page: en (default) or de.")]
Images = Annotated[
    str | None, typer.Option(help="The folder or .zip of the images, if --items names them.")
]
TextColumn = Annotated[
    str | None, typer.Option(help="The column of the texts; by default text.", hidden=True)
]
Features = Annotated[str | None, model_option(help="Features of the items.")]

app = typer.Typer(
    cls=GroupPage,
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Ask people plain questions on a web page, and train on their answers.\n\n"
    "Example: comes annotate init project --items photos/ --classes classes.txt",
)


@app.command()
@takes_options()
def init(
    folder: Folder,
    items: Annotated[str, typer.Option(help="Folder or .zip of images, table, address, hf:NAME.")],
    classes: Annotated[
        str, typer.Option(help="A class per line, or class, description, question.")
    ],
    images: Images = None,
    text_column: TextColumn = None,
    skip_broken: Annotated[
        bool,
        typer.Option("--skip-broken", help="Leave out images that cannot be read.", hidden=True),
    ] = False,
    database: Annotated[str | None, typer.Option(help="postgresql://..., for a team.")] = None,
    rate: Annotated[float, draw_option(help="Share of the items asked about each class.")] = 0.1,
    overlap: Annotated[float, draw_option(help="Share of the cards that others get, too.")] = 0.0,
    opinions: Annotated[
        int, draw_option(min=2, help="People who answer a card of the overlap.", hidden=True)
    ] = 2,
    by: Annotated[
        Literal["class", "item"],
        draw_option(help="Draw items for each class, or items once with all their classes."),
    ] = "class",
    question: Question = None,
    yes: Annotated[bool, page_option(help="Whether yes is an answer, beside no.")] = True,
    guidelines: Guidelines = None,
    language: Language = None,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Begin a project in a new folder, and draw its questions.

    Example: comes annotate init project --items photos/ --classes classes.txt --rate 0.1
    """
    from comes.annotate import Asking, ItemSource, create_project, read_question

    project = create_project(
        folder,
        ItemSource(items, images, text_column, skip_broken),
        classes,
        rate=rate,
        seed=seed,
        overlap=overlap,
        opinions=opinions,
        by=by,
        database=database,
        asking=Asking(question, yes, language or "en", guidelines),
    )
    n_items, n_classes = len(project.item_names), len(project.class_names)
    done = {
        "items": n_items,
        "classes": n_classes,
        "cards": project.count_cards(),
        "questions_saved": n_items * n_classes - project.count_questions(),
        "question": read_question(project),
        "next": f"comes annotate serve {folder}",
    }
    print_summary(done, as_json)


@app.command()
def ask(
    folder: Folder,
    question: Question = None,
    yes: Annotated[bool | None, page_option(help="Whether yes is an answer.")] = None,
    guidelines: Guidelines = None,
    language: Language = None,
    as_json: Json = False,
) -> None:
    """Show how people are asked; with options, change it. Pages follow when they are reloaded.

    Example: comes annotate ask project --question 'Can you see {a} {class}?'
    """
    from comes.annotate import change_asking, open_project, read_question

    project = open_project(folder)
    now = change_asking(project, question, yes, language, guidelines)
    asked = {
        "question": read_question(project),
        "answers": "no, cannot tell, yes" if now.asks_yes else "no, cannot tell",
        "language": now.language,
        "guidelines": str(now.guidelines or "none"),
    }
    print_summary(asked, as_json)


ADDRESSES = "addresses"  # the setting that holds where a project was served last
ROLE_TITLES = {"annotator": "annotators", "lead": "the lead", "script": "scripts"}


@app.command()
@takes_options()
def serve(
    folder: Folder,
    host: Annotated[
        str, typer.Option(help="Address to serve on; all but loopback need a token.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 takes a free one.")] = 8000,
    address: Annotated[
        str | None, typer.Option(help="What people open, if behind a proxy.")
    ] = None,
    token: Annotated[
        bool, typer.Option("--token", help="Ask for a token on loopback, too, as behind a proxy.")
    ] = False,
    new_token: Annotated[
        bool, typer.Option("--new-token", help="Revoke all links, and make new ones.")
    ] = False,
    certificate: Annotated[
        str | None,
        typer.Option(help="Certificate (.pem) with its chain, for https; with --key.", hidden=True),
    ] = None,
    key: Annotated[str | None, typer.Option(help="Key (.pem) of it.", hidden=True)] = None,
    proxy: Annotated[
        list[str] | None,
        typer.Option(help="Proxy whose X-Forwarded headers are trusted.", hidden=True),
    ] = None,
) -> None:
    """Serve the page until Ctrl-C.

    Example: comes annotate serve project --host 0.0.0.0 --port 8000
    """
    from comes.annotate import (
        ServerOptions,
        check_images_exist,
        find_links,
        list_addresses,
        open_port,
        open_project,
    )
    from comes.annotate import serve as serve_project

    options = ServerOptions(certificate, key, tuple(split_names(proxy) or ()))
    project = open_project(folder)
    listener = open_port(host, port)
    check_images_exist(project)
    made = find_links(project, host, is_wanted=token, new=new_token)
    found = list_addresses(host, listener.getsockname()[1], options.scheme)
    addresses = [address.rstrip("/")] if address else found
    project.write_setting(ADDRESSES, json.dumps(addresses))
    _print_addresses(str(folder), addresses, made)
    serve_project(project, listener, made is not None, options=options)


def _print_addresses(folder: str, addresses: list[str], made: dict[str, str] | None) -> None:
    """Print what people open, with the tokens of new links; None if no token is asked for."""
    from comes.annotate import is_private

    print(f"{Path(folder).resolve().name}: {addresses[0]}/", flush=True)
    for role, token in (made or {}).items():
        print(f"  for {ROLE_TITLES[role]}: {addresses[0]}/?token={token}")
    if others := addresses[1:]:
        print(f"The same on other addresses of this machine: {', '.join(others)}")
    if made is None:
        return
    if is_private(addresses[0]) and "127.0.0" not in addresses[0]:
        print(
            "This address is one of a private network: people in it can open it. For others, "
            "forward a port of the router, or use a VPN or a proxy (--address)."
        )
    kept = "Keep these links: a token is shown once." if made else "Earlier links are still valid."
    print(
        f"{kept}\nAnother link, beside those: comes annotate link {folder} --role annotator "
        "--for NAME",
        flush=True,
    )


@app.command()
def link(
    folder: Folder,
    name: Annotated[str, typer.Option("--for", help="Whom the link is for.")],
    role: Annotated[
        Literal["annotator", "lead", "script"],
        typer.Option(help="What it opens: the cards; the lead's pages too; or /api/v1."),
    ] = "annotator",
    address: Annotated[str | None, typer.Option(help="Where it is served, if not as last.")] = None,
    as_json: Json = False,
) -> None:
    """Make another link that lets somebody in; those made before stay valid.

    Example: comes annotate link project --role annotator --for Ada
    """
    from comes.annotate import make_link, open_project

    project = open_project(folder)
    token = make_link(project, role, name)
    known = json.loads(project.read_setting(ADDRESSES) or '["http://127.0.0.1:8000"]')
    start = (address or known[0]).rstrip("/")
    way = {"link": f"{start}/?token={token}"}
    if role == "script":
        way = {"address": f"{start}/api/v1", "header": f"Authorization: Bearer {token}"}
    print_summary({"role": role, "for": name, **way}, as_json)


@app.command()
def links(
    folder: Folder,
    revoke: Annotated[str | None, typer.Option(help="Revoke this link: a number or name.")] = None,
    as_json: Json = False,
) -> None:
    """List who can open the page, and revoke links.

    Example: comes annotate links project --revoke Ada
    """
    from comes.annotate import list_links, open_project, revoke_links

    project = open_project(folder)
    if revoke is not None:
        revoke_links(project, revoke)
    rows = [
        {
            "number": link.number,
            "role": link.role,
            "for": link.label,
            "made": _show_time(link.made_at),
            "revoked": _show_time(link.revoked_at),
        }
        for link in list_links(project)
    ]
    nothing = f"{project.name} has no links yet. comes annotate serve makes some."
    _print_list(rows, as_json, nothing)


def _show_time(moment: float | None) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(moment)) if moment else "–"


def _print_list(rows: list[dict[str, Any]], as_json: bool, nothing: str) -> None:
    """Print rows as a table or as json, or what it means that there are none."""
    if as_json:
        print_json(rows)
    elif rows:
        print_rows(rows)
    else:
        print(nothing)


@app.command()
def people(
    folder: Folder,
    leave_out: Annotated[str | None, typer.Option(help="Ignore this person's answers.")] = None,
    take_in: Annotated[str | None, typer.Option(help="Let this person's answers count.")] = None,
    as_json: Json = False,
) -> None:
    """List who answered and how: pace, habits, agreement with others, control cards.

    Example: comes annotate people project --leave-out Ada
    """
    from comes.annotate import open_project, set_left_out, summarise

    project = open_project(folder)
    if leave_out is not None:
        set_left_out(project, leave_out)
    if take_in is not None:
        set_left_out(project, take_in, False)
    found = summarise(project).people
    if as_json:
        print_json([vars(person) for person in found])
        return
    rows = [
        {
            "name": person.name,
            "answers": person.n_answers,
            "no": f"{person.share_no:.0%}",
            "cannot tell": f"{person.share_maybe:.0%}",
            "yes": f"{person.share_yes:.0%}",
            "seconds": round(person.seconds, 1),
            "agrees": f"{person.agreement:.0%} of {person.n_pairs}" if person.n_pairs else "–",
            "controls": f"{person.n_right} of {person.n_controls}" if person.n_controls else "–",
            "counts": "left out" if person.is_left_out else "yes",
        }
        for person in found
    ]
    _print_list(rows, as_json, f"Nobody has answered in {project.name} yet.")
    for person in found:
        for warning in person.warnings:
            print(f"{person.name}: {warning}.")


@app.command()
def control(
    folder: Folder,
    known: Annotated[Path, typer.Argument(help="A table of item, label and answer (no, yes).")],
    share: Annotated[float, typer.Option(help="Share of each person's cards.")] = 0.05,
    as_json: Json = False,
) -> None:
    """Mix cards with known answers in, to see how well each person answers.

    Example: comes annotate control project known.csv --share 0.05
    """
    from comes.annotate import open_project, set_controls

    count = set_controls(open_project(folder), known, share)
    print_summary({"control_cards": count, "share": share}, as_json)


@app.command()
def decide(
    folder: Folder,
    decisions: Annotated[
        Path | None, typer.Argument(help="A table of item, label and answer (no, maybe, yes).")
    ] = None,
    name: Annotated[str, typer.Option("--as", help="Who decides.")] = "the lead",
    as_json: Json = False,
) -> None:
    """List pairs that people disagree on, or store what the lead decides about them.

    Example: comes annotate decide project decisions.csv
    """
    from comes.annotate import decide_pairs, list_disagreements, open_project

    project = open_project(folder)
    if decisions is not None:
        print_summary({"decided": decide_pairs(project, decisions, name)}, as_json)
        return
    nothing = f"People disagree on nothing in {project.name}, or all of it is decided."
    _print_list(list_disagreements(project), as_json, nothing)


@app.command()
def freeze(
    folder: Folder,
    undo: Annotated[bool, typer.Option("--undo", help="Give cards to people again.")] = False,
    as_json: Json = False,
) -> None:
    """Give no more cards to people, so that what is exported stays what it is.

    Example: comes annotate freeze project
    """
    from comes.annotate import open_project, set_frozen

    set_frozen(open_project(folder), not undo)
    print_summary({"frozen": "no" if undo else "yes"}, as_json)


@app.command()
@takes_options()
def add(
    folder: Folder,
    items: Annotated[str | None, typer.Option(help="More items: folder, .zip or table.")] = None,
    new_classes: Annotated[str | None, typer.Option(help="More classes: names or a table.")] = None,
    classes: Annotated[list[str] | None, typer.Option(help="Classes to ask more about.")] = None,
    skipped: Annotated[bool, typer.Option("--skipped", help="Ask again what was skipped.")] = False,
    cards: Annotated[
        str | None,
        typer.Option(help="Instead: a table of item and label; for --active a number, or 200."),
    ] = None,
    active: Annotated[str | None, model_option(help="auto, or a model's folder.")] = None,
    features: Features = None,
    rate: Annotated[float | None, typer.Option(help="Share of items; else the project's.")] = None,
    images: Images = None,
    text_column: TextColumn = None,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Add items, classes or questions: drawn at random, drawn or chosen by a model, or skipped.

    Example: comes annotate add project --items more/

    Example: comes annotate add project --classes zebra,okapi --rate 0.05

    Example: comes annotate add project --active auto --cards 200
    """
    from comes import annotate

    names = split_names(classes)
    ways = {"items": items, "new_classes": new_classes, "classes": names, "skipped": skipped}
    ways |= {"active": active} if active is not None else {"cards": cards}
    if sum(bool(way) for way in ways.values()) != 1:
        raise ComesError(
            "say what to add: --items, --new-classes, --classes with --rate, --cards, --active or "
            "--skipped, one of them."
        )
    if active is not None and not (cards or "200").isdecimal():
        raise ComesError(
            f"--active draws a number of --cards; got {cards!r}. Give one such as 200."
        )
    project = annotate.open_project(folder)
    if active is not None:
        from comes.workflows.annotate import draw_round

        count = int(cards or 200)
        added = draw_round(project, count, model=active, features=features, seed=seed)
    elif items is not None:
        source = annotate.ItemSource(items, images, text_column)
        added = annotate.add_items(project, source, rate=rate, seed=seed)
    elif new_classes is not None:
        added = annotate.add_classes(project, new_classes, rate=rate, seed=seed)
    elif names:
        n_added = annotate.add_random_cards(project, names, 0.1 if rate is None else rate, seed)
        added = {"cards_added": n_added}
    elif cards is not None:
        from comes.datasets.table import read_table

        pairs = read_table(Path(cards), ("item", "label"))
        added = {"cards_added": annotate.add_chosen_cards(project, pairs)}
    else:
        added = {"cards_added": annotate.reopen_skipped_cards(project)}
    if added.get("left_out") and not as_json:
        print(f"{added['left_out']} names that the project has are left out.", file=sys.stderr)
    print_summary(added, as_json)


@app.command()
@takes_options()
def learn(
    folder: Folder,
    every: Annotated[int, typer.Option(min=1, help="New answers before a round; its cards.")] = 200,
    rounds: Annotated[int | None, typer.Option(min=1, help="How many; else until Ctrl-C.")] = None,
    features: Features = None,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Draw questions with a model, round by round, beside the server: run it on any machine.

    Each round waits for new answers, trains on all, and draws what is asked next. Ctrl-C ends it;
    started again, it goes on. --json prints a line for each round.

    Example: comes annotate learn project --every 200
    """
    from comes.annotate import open_project
    from comes.workflows.annotate import learn_in_rounds

    def tell_wait(missing: int) -> None:
        print(f"waiting for {missing} more answers; Ctrl-C ends it", file=sys.stderr, flush=True)

    drawn_rounds = learn_in_rounds(
        open_project(folder), every, rounds=rounds, on_wait=tell_wait, seed=seed, features=features
    )
    for drawn in drawn_rounds:
        told = (
            "round {round}: learned from {learned_from} answers in {seconds:.0f} s, drew "
            "{cards_added} cards of {bits_per_answer:.2f} bits"
        )
        print(json.dumps(drawn) if as_json else told.format(**drawn), flush=True)


@app.command(name="import")
@takes_options()
def import_(
    folder: Folder,
    answers: Annotated[Path, typer.Argument(help="Label Studio .json, Prodigy .jsonl, a table.")],
    item: Annotated[str | None, typer.Option(help="The field that names the item.")] = None,
    words: Annotated[
        list[str] | None,
        typer.Option("--answers", help="What its words mean, such as accept=yes,reject=no."),
    ] = None,
    complementary: Annotated[
        bool,
        typer.Option("--complementary", help="What was ticked is surely irrelevant.", hidden=True),
    ] = False,
    chosen_by_model: Annotated[
        bool,
        typer.Option(
            "--chosen-by-model", help="A model, not chance, chose what was asked.", hidden=True
        ),
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


@app.command()
def export(
    folder: Folder,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="A .parquet, .csv, .npz or .jsonl.")
    ],
    raw: Annotated[bool, typer.Option("--raw", help="Every answer, with person and time.")] = False,
    as_json: Json = False,
) -> None:
    """Write the answers, for comes fit; or all of them as they were given.

    Example: comes annotate export project -o answers.parquet

    Example: comes annotate export project -o raw.csv --raw
    """
    from comes.annotate import export_answers, export_raw_answers, open_project

    write = export_raw_answers if raw else export_answers
    print_summary({**write(open_project(folder), output), "file": str(output)}, as_json)


@app.command()
def report(
    folder: Folder,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Also write a .html.")
    ] = None,
    features: Annotated[str | None, typer.Option(help="Of the items: estimates priors.")] = None,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Report per class what was answered, how people agree, and what to ask next.

    Example: comes annotate report project -o report.html --features X.npz
    """
    from comes.workflows.annotate import report_project

    summary, described = report_project(folder, output, features=features, seed=seed)
    if as_json:
        print_json(described)
    else:
        _print_report(summary, described)


COLUMNS = ("class", "cards", "answered", "excluded", "confirmed", "kappa", "prior_at_most")


def _print_report(summary: "Summary", described: dict[str, Any]) -> None:
    """Print a row per class, and what to ask next."""
    rows = [{name: row[name] for name in COLUMNS} for row in described["classes"]]
    for shown, row in zip(rows, described["classes"], strict=True):
        if "class_prior" in row:
            shown["class prior"] = _show_interval(
                row["class_prior"], row["prior_lower"], row["prior_upper"]
            )
    print_rounded(rows, ".2f")
    print(
        f"{summary.n_done} of {summary.n_cards} cards are done; asking about every class of every "
        f"item would take {summary.n_saved} more questions."
    )
    if any(row["asked"] for row in described["shares"]):
        print("Estimated share of all items with each answer, with 95 % intervals:")
        print_rows(
            [
                {"class": row["class"]}
                | {
                    word: _show_interval(row[word], row[f"{word}_lower"], row[f"{word}_upper"])
                    for word in ("yes", "no")
                }
                for row in described["shares"]
            ]
        )
    if summary.to_ask:
        lacking = (
            f"{row.name} ({row.n_excluded}; about {row.more_cards} more answers are needed)"
            if row.can_be_enough
            else f"{row.name} ({row.n_excluded}; {row.more_cards or 'no'} items left to ask about)"
            for row in summary.to_ask
        )
        print_prose(f"Too few exclusions for stable training: {', '.join(lacking)}.")


def _show_interval(value: float, lower: float, upper: float) -> str:
    return "–" if value != value else f"{value:.2f} ({lower:.2f} to {upper:.2f})"
