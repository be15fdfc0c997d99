"""``comes annotate``: collect "surely not" answers on a page, and hand them on to training."""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from comes.cli.options import Json, Seed
from comes.cli.printing import print_json, print_rows, print_summary
from comes.errors import ComesError

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Ask on a web page what items surely are not, and train on the answers.\n\n"
    "Example: comes annotate demo",
)

Folder = Annotated[Path, typer.Argument(help="Folder of the project.")]
Host = Annotated[str, typer.Option(help="Address to serve on; any but loopback wants a token.")]
Port = Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 takes a free one.")]


def _needs_extra() -> None:
    """Say what to install, where the packages of the page are missing."""
    try:
        import sqlalchemy  # noqa: F401
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise ComesError(
            f"the annotation page needs {error.name}: pip install 'comes[annotate]'."
        ) from None


@app.command()
def init(
    folder: Folder,
    items: Annotated[
        str, typer.Option(help="Folder or .zip of images, or a table with a column text.")
    ],
    classes: Annotated[
        str, typer.Option(help="A class per line, or a table of class and description.")
    ],
    rate: Annotated[float, typer.Option(help="Share of the items asked about each class.")] = 0.1,
    overlap: Annotated[
        float, typer.Option(help="Share of the cards that a second person is asked, too.")
    ] = 0.0,
    by: Annotated[
        Literal["class", "item"],
        typer.Option(help="Draw items for each class, or items once with all their classes."),
    ] = "class",
    images: Annotated[
        str, typer.Option(help="The folder or .zip of the images, if --items names them.")
    ] = "",
    database: Annotated[
        str, typer.Option(help="postgresql://USER@HOST/NAME, for a team; else a file.")
    ] = "",
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Draw the questions of a new project.

    Example: comes annotate init project --items photos/ --classes classes.txt --rate 0.1
    """
    _needs_extra()
    from comes.annotate import create_project, summarise

    project = create_project(
        folder,
        items,
        classes,
        rate=rate,
        seed=seed,
        overlap=overlap,
        by=by,
        images=images or None,
        database=database or None,
    )
    summary = summarise(project)
    print_summary(
        {
            "items": summary.n_items,
            "classes": summary.n_classes,
            "cards": summary.n_cards,
            "questions_saved": summary.n_saved,
            "next": f"comes annotate serve {folder}",
        },
        as_json,
    )


@app.command()
def serve(
    folder: Folder,
    host: Host = "127.0.0.1",
    port: Port = 8000,
    lease: Annotated[
        float, typer.Option(min=1, help="Seconds after which cards of a closed browser come back.")
    ] = 300,
    token: Annotated[
        bool, typer.Option("--token", help="Want the token on loopback, too: behind a proxy.")
    ] = False,
    new_token: Annotated[
        bool, typer.Option("--new-token", help="Make a new token; the old one ends.")
    ] = False,
) -> None:
    """Serve the page until Ctrl-C.

    Example: comes annotate serve project

    Example: comes annotate serve project --host 0.0.0.0 --port 8000
    """
    _needs_extra()
    from comes.annotate import (
        address_of,
        check_images_exist,
        find_token,
        open_port,
        open_project,
    )
    from comes.annotate import serve as serve_project

    project = open_project(folder)
    listener = open_port(host, port)
    check_images_exist(project)
    digest, made = find_token(project, host, is_wanted=token, new=new_token)
    address = address_of(host, listener.getsockname()[1])
    print(f"{project.name}: {address}/{f'?token={made}' if made else ''}", flush=True)
    if made:
        print("Keep this address: the token is shown once.", flush=True)
    elif digest:
        print(
            "Who has opened the address with the token before gets in. For others, --new-token "
            "makes another, which all need then.",
            flush=True,
        )
    serve_project(project, listener, digest, lease)


@app.command()
def add(
    folder: Folder,
    classes: Annotated[
        str, typer.Option(help="Classes to ask more about, separated by commas.")
    ] = "",
    rate: Annotated[
        float, typer.Option(help="Share of all items, drawn among those not asked.")
    ] = 0.1,
    cards: Annotated[
        str, typer.Option(help="Instead: a table of item and label that a model chose.")
    ] = "",
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
    _needs_extra()
    from comes.annotate import (
        add_chosen_cards,
        add_random_cards,
        open_project,
        reopen_skipped_cards,
    )
    from comes.datasets import read_table

    if [bool(classes), bool(cards), skipped].count(True) != 1:
        raise ComesError("say what to add: --classes with --rate, or --cards, or --skipped.")
    project = open_project(folder)
    if skipped:
        added = reopen_skipped_cards(project)
    elif cards:
        added = add_chosen_cards(project, read_table(Path(cards), ("item", "label")))
    else:
        wanted = [name.strip() for name in classes.split(",")]
        added = add_random_cards(project, wanted, rate, seed)
    print_summary({"cards_added": added}, as_json)


@app.command(name="import")
def import_(
    folder: Folder,
    answers: Annotated[Path, typer.Argument(help="Label Studio .json, Prodigy .jsonl, a table.")],
    item: Annotated[str, typer.Option(help="The field that names the item.")] = "",
    complementary: Annotated[
        bool, typer.Option("--complementary", help="What was ticked is surely irrelevant.")
    ] = False,
    chosen_by_model: Annotated[
        bool,
        typer.Option("--chosen-by-model", help="A model chose what was asked; no risk uses it."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Take the answers of another tool into a project.

    Example: comes annotate import project export.json --item image
    """
    _needs_extra()
    from comes.annotate import import_answers, open_project

    counts = import_answers(
        open_project(folder),
        answers,
        item=item or None,
        complementary=complementary,
        chosen_by_model=chosen_by_model,
    )
    print_summary(counts, as_json)


@app.command()
def export(
    folder: Folder,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="A .parquet, .csv, .npz, .mat or .jsonl file.")
    ],
    as_json: Json = False,
) -> None:
    """Write the answers, for comes fit.

    Example: comes annotate export project -o answers.parquet
    """
    _needs_extra()
    from comes.annotate import export_answers, open_project

    print_summary(export_answers(open_project(folder), output) | {"file": str(output)}, as_json)


@app.command()
def report(
    folder: Folder,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write a page, .html, too.")
    ] = None,
    features: Annotated[
        str, typer.Option(help="Features of the items, to estimate class priors.")
    ] = "",
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Say per class what was answered, how people agree, and what to ask next.

    Example: comes annotate report project -o report.html --features X.npz
    """
    _needs_extra()
    from comes.annotate import (
        describe_summary,
        open_project,
        summarise,
        tabulate_classes,
        write_overview,
    )

    if output and output.suffix.lower() not in (".html", ".htm"):
        raise ComesError(f"{output} should end in .html; a page is written there.")
    project = open_project(folder)
    priors = _priors(project, features, seed) if features else None
    summary = write_overview(project, output, priors=priors) if output else summarise(project)
    if as_json:
        print_json(describe_summary(summary, priors))
        return
    table = tabulate_classes(summary, priors)
    named = {"chosen_by_model": "by model", "share_maybe": "maybe", "prior_at_most": "prior ≤"}
    left_out = ["asked", "torn", "pairs", "kappa_lower", "kappa_upper", "more_cards"]
    for name in ("skipped", "chosen_by_model", "agreement", "kappa", "seconds"):
        if not table[name].fillna(0).any():  # nothing to show
            left_out.append(name)
    shown = table.drop(columns=left_out).rename(columns=named).round(2)
    rows: Any = shown.astype(object).where(shown.notna(), "–").to_dict("records")
    print_rows(rows)
    print(
        f"{summary.n_done} of {summary.n_cards} cards are done; asking about every class of every "
        f"item would be {summary.n_saved} questions more."
    )
    for row in summary.to_ask:
        needs = f"about {row.more_cards} more answers are needed"
        if not row.can_be_enough:
            needs = f"the {row.more_cards} items that are left will hardly do"
        print(f"{row.name}: {row.n_excluded} exclusions are few; {needs}.")


def _priors(project: Any, features: str, seed: int) -> Any:
    """Return the table of class priors, estimated from the answers and features of the items."""
    from comes.annotate import collect_answers
    from comes.datasets import join_features, read_features
    from comes.priors import estimate_class_prior, prior_table

    answers, _ = collect_answers(project)
    dataset = join_features(answers, *read_features(features))
    candidates: Any = dataset.candidates
    estimate = estimate_class_prior(
        dataset.X, candidates, random_state=seed, label_names=dataset.label_names
    )
    return prior_table(estimate, dataset.label_names)


@app.command()
def demo(
    robot: Annotated[
        int, typer.Option(min=0, help="Simulated annotators; 0 serves the page for you.")
    ] = 0,
    scenes: Annotated[
        int | None, typer.Option(min=20, help="Digit scenes: 1000, for robots 10000.")
    ] = None,
    epochs: Annotated[int, typer.Option(min=1)] = 50,
    port: Port = 8000,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Annotate the embedded digit scenes yourself, or let robots do it and train on their answers.

    Example: comes annotate demo

    Example: comes annotate demo --robot 10
    """
    _needs_extra()
    from comes.demo import annotate_by_robots, serve_scenes

    if not robot:
        serve_scenes(scenes or 1000, port, seed)
        return
    circle = annotate_by_robots(robot, scenes or 10000, epochs, seed)
    if as_json:
        print_json(circle._asdict())
        return
    print(
        f"{robot} robots answered {circle.answers} cards over HTTP in {circle.seconds:.1f} s, "
        f"{circle.answers / circle.seconds:.0f} a second; {circle.excluded} say 'surely not'. "
        f"Class priors estimated from them are off by {circle.prior_error:.3f} on average."
    )
    print_rows(
        [
            {"COMES-HL trained on": title, "average precision ↑": f"{value:.3f}"}
            for title, value in (
                ("answers of the robots", circle.average_precision),
                ("candidates generated directly", circle.directly),
            )
        ]
    )
