"""Guidelines of classes, by number: a text, and pictures."""

from pathlib import Path

from sqlalchemy import select
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from comes.annotate.asking import GUIDELINES, read_asking
from comes.annotate.guidelines import Guideline, find_guideline, read_picture
from comes.annotate.schema import classes
from comes.annotate.web.site import Site
from comes.errors import ComesError


class GuidelineRoutes:
    """The guidelines of a project."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self.routes = [
            Route("/api/guidelines/{number}", self.text),
            Route("/guidelines/{number}/{picture}", self.picture),
        ]

    async def text(self, request: Request) -> Response:
        """Send the text about a class, and how many pictures there are."""
        found = await run_in_threadpool(self._find, request.path_params["number"])
        values = {"text": found.text, "is_markdown": found.is_markdown}
        return JSONResponse({**values, "pictures": len(found.pictures)})

    async def picture(self, request: Request) -> Response:
        """Send an example picture of a class; the first is number 1."""
        found = await run_in_threadpool(self._find, request.path_params["number"])
        k = _parse_number(request.path_params["picture"])
        if not 1 <= k <= len(found.pictures):
            raise HTTPException(404, "there is no such picture")
        try:
            content = await run_in_threadpool(read_picture, found.pictures[k - 1])
        except ComesError as error:
            raise HTTPException(422, str(error).rstrip(".")) from None
        headers = {"Cache-Control": "private, max-age=300"}
        return Response(content, media_type="image/jpeg", headers=headers)

    def _find(self, number: str) -> Guideline:
        query = select(classes.c.name).where(classes.c.id == _parse_number(number))
        with self._site.project.reading() as connection:
            name = connection.execute(query).scalar_one_or_none()
            folder = read_asking(connection).get(GUIDELINES)
        if name is None or folder is None:
            raise HTTPException(404, "there are no such guidelines")
        return find_guideline(Path(folder), name)


def _parse_number(text: str) -> int:
    return int(text) if text.isdecimal() and len(text) < 10 else 0
