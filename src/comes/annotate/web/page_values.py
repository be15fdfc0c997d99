"""What the pages of annotators are made from: words in a language, and how people are asked."""

from typing import Any

from sqlalchemy import func, select
from starlette.requests import Request

from comes.annotate.asking import (
    ASKS_YES,
    GUIDELINES,
    LANGUAGE,
    QUESTION,
    add_questions,
    default_template,
    read_asking,
)
from comes.annotate.languages import LANGUAGES, read_words
from comes.annotate.project import Project
from comes.annotate.schema import classes, items
from comes.annotate.web.site import read_role

LANGUAGE_COOKIE = "comes_language"


def describe_page(project: Project, request: Request) -> dict[str, Any]:
    """Return the values that the pages of annotators share, in the language of the browser."""
    with project.reading() as connection:
        asked = read_asking(connection)
        rows = connection.execute(
            select(classes.c.name.label("class"), classes.c.question).order_by(classes.c.id)
        ).all()
        text = None if project.kind == "image" else ""
        asks = add_questions(connection, [{**row._mapping, "text": text} for row in rows[:1]])
        n_items = connection.execute(select(func.count()).select_from(items)).scalar_one()
    own = asked.get(LANGUAGE, "en")
    chosen = request.cookies.get(LANGUAGE_COOKIE, own)
    language = chosen if chosen in LANGUAGES else own
    template = asked.get(QUESTION) or default_template(project.kind, own)
    return {
        "words": read_words(language),
        "language": language,
        "languages": LANGUAGES,
        "role": read_role(request),
        "kind": project.kind,
        "asks_yes": asked.get(ASKS_YES) != "0",
        "has_guidelines": GUIDELINES in asked,
        "has_own_question": QUESTION in asked,
        "asked": template,
        "ask": template if QUESTION in asked else default_template(project.kind, language),
        "question": asks[0]["question"] if asks else "",
        "n_items": n_items,
        "n_classes": len(rows),
    }
