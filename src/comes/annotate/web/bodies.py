"""What a browser may send to the server, and how it is read and checked."""

import json
from typing import Annotated, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError
from starlette.requests import ClientDisconnect, Request

from comes.annotate.card_notes import MOST_CHARACTERS
from comes.annotate.leases import Answer, RefusedError
from comes.annotate.web.guard import LARGEST_BODY

MOST_IN_A_REQUEST = 300  # answers or keys
MOST_OPEN = 3000  # cards that a page may have

Number = Annotated[int, Field(ge=1, lt=2**31)]
Numbers = Annotated[list[Number], Field(max_length=MOST_OPEN)]
Id = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{8,64}$")]


class Body(BaseModel):
    """A json object with exactly these fields, of exactly these types."""

    model_config = ConfigDict(extra="forbid", strict=True)


class JoinBody(Body):
    """Who annotates."""

    name: Annotated[str, StringConstraints(min_length=1, max_length=60, strip_whitespace=True)]
    is_same: bool = False  # as somebody whose name differs in case or blanks only


class CardsBody(Body):
    """A request for cards."""

    tab: Id
    mode: Literal["cards", "grid"] = "cards"
    has: Numbers = []  # cards that the page has, or whose answers are on their way


class ReleaseBody(Body):
    """A tab that is closed."""

    tab: Id
    keep: Numbers = []  # cards whose answers are on their way


class NoteBody(Body):
    """A note on a card; without words it is a flag."""

    tab: Id
    card: Number
    text: Annotated[str, StringConstraints(max_length=MOST_CHARACTERS, strip_whitespace=True)] = ""


class AnswerBody(Body):
    """One answer."""

    card: Number
    answer: Answer
    key: Id
    seconds: Annotated[float, Field(ge=0, le=86400, allow_inf_nan=False)] | None = None


class AnswersBody(Body):
    """Answers that are stored together."""

    tab: Id
    answers: Annotated[list[AnswerBody], Field(min_length=1, max_length=MOST_IN_A_REQUEST)]


class UndoBody(Body):
    """Keys of answers to undo."""

    tab: Id
    keys: Annotated[list[Id], Field(min_length=1, max_length=MOST_IN_A_REQUEST)]


Kind = TypeVar("Kind", bound=Body)


async def read_body(request: Request, kind: type[Kind]) -> Kind:
    """Return the body of a request; refuse one that is too large, not json, or not of the kind."""
    content = bytearray()
    try:
        async for part in request.stream():
            content += part
            if len(content) > LARGEST_BODY:
                raise RefusedError(413, f"at most {LARGEST_BODY} bytes are read")
        return kind.model_validate(json.loads(content))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise RefusedError(422, f"{place}: {first['msg']}" if place else first["msg"]) from None
    except ClientDisconnect:
        raise RefusedError(400, "the connection closed before the body was complete") from None
    except (ValueError, RecursionError):
        raise RefusedError(400, "the body is not json") from None
