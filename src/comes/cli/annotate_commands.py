"""``comes annotate``: ask people plain questions on a page, and train on their answers."""

from typing import Annotated, Literal

import typer

from comes.cli.annotate_ask_command import Guidelines, Question, ask, page_option
from comes.cli.annotate_data_commands import export, import_, report
from comes.cli.annotate_demo_command import demo
from comes.cli.annotate_growth_commands import add, learn
from comes.cli.annotate_options import Folder
from comes.cli.annotate_team_commands import (
    control,
    decide,
    freeze,
    link,
    links,
    people,
    serve,
)
from comes.cli.help_pages import GroupPage, options_under
from comes.cli.options import Json, Seed, SkipBroken, image_option
from comes.cli.printing import print_summary

app = typer.Typer(
    cls=GroupPage,
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Ask people plain questions on a web page, and train on their answers.\n\n"
    "Example: comes annotate demo",
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
app.command()(demo)
