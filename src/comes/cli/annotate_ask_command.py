"""``comes annotate ask``: how people are asked, and how that is changed."""

from typing import Annotated

import typer

from comes.cli.annotate_options import Folder
from comes.cli.help_pages import options_under
from comes.cli.options import Json
from comes.cli.printing import print_summary

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
