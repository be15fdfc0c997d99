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
    SkipBroken,
    image_option,
    options_under,
    parse_pairs,
    split_names,
)
from comes.cli.printing import print_json, print_rounded, print_rows, print_summary
from comes.errors import ComesError

if TYPE_CHECKING:
    from comes.annotate import Summary
    from comes.workflows.annotate import ActiveRound
Folder = Annotated[Path, typer.Argument(help="Folder of the project.")]
Host = Annotated[
    str, typer.Option(help="Address to serve on; any address but loopback needs a token.")
]
Port = Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 takes a free one.")]


page_option = options_under("The page")
Question = Annotated[
    str | None, page_option(help="'Does this show {class}?'; {a} is a or an, as needed.")
]
Guidelines = Annotated[
    str | None, page_option(help="Folder with CLASS.md and pictures CLASS-1.jpg.")
]


def ask(
    folder: Folder,
    question: Question = None,
    yes: Annotated[bool | None, typer.Option(help="Whether yes is an answer.")] = None,
    guidelines: Guidelines = None,
    language: Annotated[str | None, typer.Option(help="Language of the page: en or de.")] = None,
    as_json: Json = False,
) -> None:
    """Show how people are asked; with options, change it. Pages follow when they are reloaded.

    Example: comes annotate ask project --question 'Can you see {a} {class}?'
    """
    from comes.annotate import change_asking, open_project, read_question

    project = open_project(folder)
    now = change_asking(project, question, yes, language, guidelines)
    print_summary(
        {
            "question": read_question(project),
            "answers": "no, cannot tell, yes" if now.asks_yes else "no, cannot tell",
            "language": now.language,
            "guidelines": str(now.guidelines or "none"),
        },
        as_json,
    )


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
    as_json: Json = False,
) -> None:
    """Write the answers, for comes fit; or all of them as they were given.

    Example: comes annotate export project -o answers.parquet

    Example: comes annotate export project -o raw.csv --raw
    """
    from comes.annotate import export_answers, export_raw_answers, open_project

    write = export_raw_answers if raw else export_answers
    print_summary({**write(open_project(folder), output), "file": str(output)}, as_json)


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
    from comes.workflows.annotate import report_project

    summary, described = report_project(folder, output, features=features, seed=seed)
    if as_json:
        print_json(described)
    else:
        _print_report(summary, described)


HIDDEN = {"asked", "torn", "pairs", "kappa_lower", "kappa_upper", "more_cards", "seconds_left"}
HIDDEN |= {"share_no", "share_maybe", "share_yes"}
ALWAYS = {"class", "cards", "answered", "excluded", "prior_at_most"}
TITLES = {"chosen_by_model": "by model", "agreement": "agree"}
TITLES |= {"prior_at_least": "prior ≥", "prior_at_most": "prior ≤"}


def _print_report(summary: "Summary", described: dict[str, Any]) -> None:
    """Print a row per class, without empty columns, and what to ask next."""
    rows, shares = described["classes"], described["shares"]
    shown = [
        name
        for name in rows[0]
        if name not in HIDDEN
        and (name in ALWAYS or any(row[name] and row[name] == row[name] for row in rows))
    ]
    print_rounded([{TITLES.get(name, name): row[name] for name in shown} for row in rows], ".2f")
    print(
        f"{summary.n_done} of {summary.n_cards} cards are done; asking about every class of every "
        f"item would take {summary.n_saved} more questions."
    )
    if any(row["asked"] for row in shares):
        print("Estimated share of all items with each answer, with 95 % intervals:")
        print_rows(
            [
                {"class": row["class"]}
                | {word: _format_share(row, word) for word in ("yes", "no")}
                | {"asked": row["asked"]}
                for row in shares
            ]
        )
    if summary.to_ask:
        print("Classes with too few exclusions for stable training:")
    for lacking in summary.to_ask:
        count = lacking.more_cards
        needs = f"about {count} more answers are needed"
        if not lacking.can_be_enough:
            left = "1 item is" if count == 1 else f"{count or 'no'} items are"
            needs = f"{left} left to ask about"
        print(f"  {lacking.name}: {lacking.n_excluded}; {needs}")


def _format_share(row: dict[str, Any], word: str) -> str:
    share, lower, upper = row[word], row[f"{word}_lower"], row[f"{word}_upper"]
    return "–" if share != share else f"{share:.3f} ({lower:.3f} to {upper:.3f})"


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
        list[str] | None, typer.Option(help="Instead: classes to ask more about; may be repeated.")
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
    from comes.workflows.annotate import add_questions

    added = add_questions(
        folder,
        classes=split_names(",".join(classes or ())),
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
    from comes.workflows.annotate import draw_round

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
    from comes.workflows.annotate import learn_in_rounds

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


ADDRESSES = "addresses"  # the setting that holds where a project was served last
ROLE_TITLES = {"annotator": "annotators", "lead": "the lead", "script": "scripts"}


def serve(
    folder: Folder,
    host: Host = "127.0.0.1",
    port: Port = 8000,
    lease: Annotated[
        float, typer.Option(min=1, help="Seconds after which cards of a closed browser come back.")
    ] = 300,
    address: Annotated[
        str | None, typer.Option(help="What people open, if not this machine, as behind a proxy.")
    ] = None,
    token: Annotated[
        bool, typer.Option("--token", help="Ask for a token on loopback too, as behind a proxy.")
    ] = False,
    new_token: Annotated[
        bool, typer.Option("--new-token", help="Revoke all links, and make new ones.")
    ] = False,
    certificate: Annotated[
        str | None, typer.Option(help="Certificate (.pem) with its chain, for https; with --key.")
    ] = None,
    key: Annotated[str | None, typer.Option(help="Key (.pem) of the certificate.")] = None,
    proxy: Annotated[
        list[str] | None,
        typer.Option(help="Proxy whose X-Forwarded headers are trusted; may be repeated."),
    ] = None,
) -> None:
    """Serve the page until Ctrl-C.

    Example: comes annotate serve project

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

    options = ServerOptions(certificate, key, tuple(split_names(",".join(proxy or ())) or ()))
    project = open_project(folder)
    listener = open_port(host, port)
    check_images_exist(project)
    made = find_links(project, host, is_wanted=token, new=new_token)
    found = list_addresses(host, listener.getsockname()[1], options.scheme)
    addresses = [address.rstrip("/")] if address else found
    project.write_setting(ADDRESSES, json.dumps(addresses))
    _print_addresses(str(folder), addresses, made)
    serve_project(project, listener, made is not None, lease, options)


def _print_addresses(folder: str, addresses: list[str], made: dict[str, str] | None) -> None:
    """Print what people open, with the tokens of new links."""
    from comes.annotate import is_private

    print(f"{Path(folder).resolve().name}: {addresses[0]}/", flush=True)
    for role, token in (made or {}).items():
        print(f"  for {ROLE_TITLES[role]}: {addresses[0]}/?token={token}")
    if others := addresses[1:]:
        print(f"The same on other addresses of this machine: {', '.join(others)}")
    if is_private(addresses[0]) and made is not None and not addresses[0].count("127.0.0"):
        print(
            "This address is one of a private network: people in it can open it. For others, "
            "forward a port of the router, or use a VPN or a proxy (--address)."
        )
    if made:
        print("Keep these links: a token is shown once.")
    elif made is not None:
        print("The links made before are still valid.")
    if made is not None:
        print(
            f"Another link, beside those: comes annotate link {folder} --role annotator --for NAME",
            flush=True,
        )


def link(
    folder: Folder,
    name: Annotated[str, typer.Option("--for", help="Whom the link is for.")],
    role: Annotated[
        Literal["annotator", "lead", "script"],
        typer.Option(help="What it opens: the cards; the lead's pages too; or /api/v1."),
    ] = "annotator",
    address: Annotated[
        str | None, typer.Option(help="Where the project is served; by default, where it was last.")
    ] = None,
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


def links(
    folder: Folder,
    revoke: Annotated[
        str | None, typer.Option(help="Revoke the link of this number, or of this name.")
    ] = None,
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
            "made": _print_time(link.made_at),
            "revoked": _print_time(link.revoked_at),
        }
        for link in list_links(project)
    ]
    if as_json:
        print_json(rows)
    elif rows:
        print_rows(rows)
    else:
        print(f"{project.name} has no links yet. comes annotate serve makes some.")


def _print_time(moment: float | None) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(moment)) if moment else "–"


def people(
    folder: Folder,
    leave_out: Annotated[
        str | None, typer.Option(help="Let the answers of this person count for nothing.")
    ] = None,
    take_in: Annotated[
        str | None, typer.Option(help="Let the answers of this person count again.")
    ] = None,
    as_json: Json = False,
) -> None:
    """List who answered and how: pace, habits, agreement with others, control cards.

    Example: comes annotate people project

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
    if rows:
        print_rows(rows)
    for person in found:
        for warning in person.warnings:
            print(f"{person.name}: {warning}.")
    if not found:
        print(f"Nobody has answered in {project.name} yet.")


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


def control(
    folder: Folder,
    known: Annotated[Path, typer.Argument(help="A table of item, label and answer (no, yes).")],
    share: Annotated[
        float, typer.Option(help="Share of the cards of each person that are control cards.")
    ] = 0.05,
    as_json: Json = False,
) -> None:
    """Mix cards with known answers in, to see how well each person answers.

    Example: comes annotate control project known.csv --share 0.05
    """
    from comes.annotate import open_project, set_controls

    count = set_controls(open_project(folder), known, share)
    print_summary({"control_cards": count, "share": share}, as_json)


def decide(
    folder: Folder,
    decisions: Annotated[
        Path | None, typer.Argument(help="A table of item, label and answer (no, maybe, yes).")
    ] = None,
    name: Annotated[str, typer.Option("--as", help="Who decides.")] = "the lead",
    as_json: Json = False,
) -> None:
    """List pairs that people disagree on, or store what the lead decides about them.

    Example: comes annotate decide project

    Example: comes annotate decide project decisions.csv
    """
    from comes.annotate import decide_pairs, list_disagreements, open_project

    project = open_project(folder)
    if decisions is not None:
        print_summary({"decided": decide_pairs(project, decisions, name)}, as_json)
        return
    rows = list_disagreements(project)
    if as_json:
        print_json(rows)
    elif rows:
        print_rows(rows)
    else:
        print(f"People disagree on nothing in {project.name}, or all of it is decided.")


app = typer.Typer(
    cls=GroupPage,
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Ask people plain questions on a web page, and train on their answers.\n\n"
    "Example: comes annotate init project --items photos/ --classes classes.txt",
)
draw_option = options_under("What is asked")


@app.command()
def init(
    folder: Folder,
    items: Annotated[
        str,
        typer.Option(help="Folder or .zip of images, a table of texts, an address, or hf:NAME."),
    ],
    classes: Annotated[
        str, typer.Option(help="A class per line, or a table: class, description, question.")
    ],
    rate: Annotated[float, draw_option(help="Share of the items asked about each class.")] = 0.1,
    overlap: Annotated[
        float,
        draw_option(help="Share of the cards (with --by item: items) that others get as well."),
    ] = 0.0,
    opinions: Annotated[
        int, draw_option(min=2, help="People who answer a card of the overlap.")
    ] = 2,
    by: Annotated[
        Literal["class", "item"],
        draw_option(help="Draw items for each class, or items once with all their classes."),
    ] = "class",
    images: Annotated[
        str | None, image_option(help="The folder or .zip of the images, if --items names them.")
    ] = None,
    text_column: Annotated[
        str | None, typer.Option(help="The column of the texts; by default text.")
    ] = None,
    skip_broken: SkipBroken = False,
    database: Annotated[
        str | None, typer.Option(help="postgresql://USER@HOST/NAME, for a team; else a file.")
    ] = None,
    question: Question = None,
    yes: Annotated[bool, page_option(help="Whether yes is an answer, beside no.")] = True,
    guidelines: Guidelines = None,
    language: Annotated[str, page_option(help="Language of the page: en or de.")] = "en",
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
        asking=Asking(question, yes, language, guidelines),
    )
    n_items, n_classes = len(project.item_names), len(project.class_names)
    print_summary(
        {
            "items": n_items,
            "classes": n_classes,
            "cards": project.count_cards(),
            "questions_saved": n_items * n_classes - project.count_questions(),
            "question": read_question(project),
            "next": f"comes annotate serve {folder}",
        },
        as_json,
    )


app.command()(ask)
app.command()(serve)
app.command()(link)
app.command()(links)
app.command()(people)
app.command()(control)
app.command()(decide)
app.command()(freeze)
app.command()(add)
app.command()(learn)
app.command(name="import")(import_)
app.command()(export)
app.command()(report)
