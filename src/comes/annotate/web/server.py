"""The web application: pages, pictures by number, and commands as json."""

from functools import lru_cache
from importlib.resources import files
from typing import Any

from sqlalchemy.exc import SQLAlchemyError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from comes.annotate.leases import RefusedError
from comes.annotate.links import KnownLinks
from comes.annotate.project import Project
from comes.annotate.web.answer_routes import AnswerPages
from comes.annotate.web.guard import Guard, make_refusal
from comes.annotate.web.guideline_routes import GuidelineRoutes
from comes.annotate.web.lead_routes import LeadPages
from comes.annotate.web.picture_routes import PictureRoutes
from comes.annotate.web.script_routes import ScriptRoutes
from comes.annotate.web.site import Site
from comes.errors import ComesError

LEASE = 300.0  # seconds that a silent tab keeps its cards
STATIC = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


def make_app(project: Project, *, needs_token: bool = False, lease: float = LEASE) -> ASGIApp:
    """Return the application that serves a project.

    Parameters
    ----------
    project : Project
    needs_token : bool
        Whether every request must carry the token of a link, from `make_link`; without, everybody
        who reaches the server is a lead.
    lease : float
        Seconds after which the cards of a silent tab are free again.

    Returns
    -------
    app : ASGI application

    Examples
    --------
    >>> from starlette.testclient import TestClient
    >>> from comes.annotate import trial_project
    >>> with trial_project() as project:
    ...     with TestClient(make_app(project), base_url="http://127.0.0.1") as client:
    ...         client.post("/api/join", json={"name": "Ada"}).json()
    {'name': 'Ada'}
    """
    site = Site(project, lease)
    routes = [
        *AnswerPages(site).routes,
        *LeadPages(site).routes,
        *PictureRoutes(site).routes,
        *GuidelineRoutes(site).routes,
        *ScriptRoutes(site).routes,
        Route("/static/{name}", _send_static),
    ]
    handlers: dict[Any, Any] = {
        RefusedError: _respond_refusal,
        HTTPException: _respond_http_error,
        SQLAlchemyError: _respond_unavailable,
        ComesError: _respond_unavailable,
    }
    app = Starlette(routes=routes, exception_handlers=handlers, lifespan=site.lifespan)
    return Guard(app, KnownLinks(project) if needs_token else None)


async def _send_static(request: Request) -> Response:
    """Send one of our scripts or style sheets."""
    content = _load_static_files().get(request.path_params["name"])
    if content is None:
        raise HTTPException(404, "there is no such file")
    return Response(content[0], media_type=content[1], headers={"Cache-Control": "no-cache"})


@lru_cache
def _load_static_files() -> dict[str, tuple[bytes, str]]:
    folder = files("comes.annotate.web").joinpath("static")
    return {
        file.name: (file.read_bytes(), kind)
        for file in folder.iterdir()
        for ending, kind in STATIC.items()
        if file.name.endswith(ending)
    }


async def _respond_refusal(request: Request, error: Exception) -> Response:
    assert isinstance(error, RefusedError)
    return make_refusal(request.headers, error.status, error.reason, error.card)


async def _respond_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    is_unknown = error.status_code == 404 and error.detail == "Not Found"  # in no route
    reason = "there is no such page" if is_unknown else error.detail
    answer = make_refusal(request.headers, error.status_code, f"{reason[:1].lower()}{reason[1:]}")
    answer.headers.update(error.headers or {})  # which methods are allowed
    return answer


async def _respond_unavailable(request: Request, error: Exception) -> Response:
    reason = str(error) if isinstance(error, ComesError) else "the database does not answer"
    return make_refusal(request.headers, 503, f"{reason.rstrip('.')}; try again")
