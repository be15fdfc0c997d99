"""A project that a lead starts in the browser: its files, its classes, its question.

Until there is a project, its folder does not exist: files that are sent wait in a hidden folder
beside it. Then the same server serves the project.
"""

import hmac
import json
import shutil
import tempfile
import threading
import warnings
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Annotated, Literal

import pandas as pd
from pydantic import Field, StringConstraints
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from comes.annotate.asking import (
    LANGUAGES,
    LONGEST_QUESTION,
    default_template,
    describe_asking,
)
from comes.annotate.cards import RefusedError, sample_cards
from comes.annotate.items import JSON_LINES, read_classes, read_items
from comes.annotate.lead import LEAD
from comes.annotate.links import KnownLinks, make_link
from comes.annotate.project import Project, create_project
from comes.annotate.schema import ADDRESSES
from comes.annotate.web.app import (
    LARGEST_UPLOAD,
    Body,
    check_place,
    clean_file_name,
    read_body,
    receive_file,
    render,
)
from comes.annotate.web.server import LEASE, guard_routes, make_app
from comes.datasets.images import PICTURE_ENDINGS, image_names
from comes.datasets.table import TABLE_ENDINGS
from comes.errors import ComesError, ComesWarning
from comes.files import check_folder_target

MOST_UPLOADS = 20_000  # files
MOST_BYTES = 16 * 2**30  # of all of them
TABLES = (*TABLE_ENDINGS, JSON_LINES)
SHOWN_FILES = 200  # on the page

Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
ShortText = Annotated[str, StringConstraints(max_length=1000, strip_whitespace=True)]


class ItemsBody(Body):
    """Where the items are: on the server, or, with an empty place, among the files sent."""

    place: ShortText
    text_column: ShortText = ""


class RemoveBody(Body):
    """A file to remove; null removes all."""

    name: ShortText | None


class ProjectBody(ItemsBody):
    """A project to make; classes are lines such as "boat" or "boat: floats"."""

    skip_broken: bool
    classes: str
    question: ShortText
    asks_yes: bool
    language: Literal["en", "de"]
    rate: Share
    overlap: Share
    by: Literal["class", "item"]


class _FieldError(RefusedError):
    """What is wrong with a field of the page."""

    def __init__(self, field: str, error: Exception) -> None:
        super().__init__(422, str(error))
        self.field = field


class _FirstLink(KnownLinks):
    """The one link of the lead, while there is no project to keep it."""

    is_fresh = True

    def __init__(self, token: str) -> None:
        self._token = token

    def find_role(self, token: str) -> str | None:
        """Return the role of a token; None if it is another one."""
        return "lead" if hmac.compare_digest(token.encode(), self._token.encode()) else None


class Setup:
    """The application with which a lead starts a project, and then that of the project.

    The token is of the lead's link, None where nobody needs one; links are made with the addresses.
    """

    def __init__(
        self,
        folder: Path,
        token: str | None = None,
        *,
        addresses: Sequence[str] = (),
        lease: float = LEASE,
    ) -> None:
        self._folder, self._token = check_folder_target(folder, ()), token
        self._addresses, self._lease = addresses, lease
        self._uploads = self._folder.parent / f".{self._folder.name}-files"
        # Of the files that were sent, perhaps before the server was started again.
        found = self._uploads.glob("[!.]*")
        self._sizes = {path.name: path.stat().st_size for path in found}
        self._making = threading.Lock()
        self._running = AsyncExitStack()
        routes = [
            Route("/setup", self.show),
            *(Route(path, RedirectResponse("/setup")) for path in ("/", "/join", "/grid", "/lead")),
            Route("/api/setup/files/{name}", self.take_file, methods=["PUT"]),
            Route("/api/setup/remove", self.remove_files, methods=["POST"]),
            Route("/api/setup/items", self.count_items, methods=["POST"]),
            Route("/api/setup/project", self.make_project, methods=["POST"]),
        ]
        link = None if token is None else _FirstLink(token)
        self._app = guard_routes(routes, link, self._lifespan)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Respond to a request, or start and end with the server."""
        await self._app(scope, receive, send)

    @asynccontextmanager
    async def _lifespan(self, _: Starlette) -> AsyncIterator[None]:
        """Run what the project needs, once there is one, as long as the server runs."""
        async with self._running:
            yield

    async def show(self, _: Request) -> Response:
        """Show the page."""
        kinds = ("image", "text")
        page = render(
            "setup.html.jinja",
            folder=self._folder.name,
            files=[{"name": name, "size": size} for name, size in self._sizes.items()],
            shown_files=SHOWN_FILES,
            endings=(*PICTURE_ENDINGS, ".zip", *TABLES),
            largest=LARGEST_UPLOAD,
            questions={k: {code: default_template(k, code) for code in LANGUAGES} for k in kinds},
            languages=LANGUAGES,
            longest=LONGEST_QUESTION,
            home="" if self._token is None else str(Path.cwd()),
        )
        return HTMLResponse(page, headers={"Cache-Control": "no-store"})

    # ---- files

    async def take_file(self, request: Request) -> Response:
        """Store a file that is sent; nothing of one that breaks off stays."""
        name = clean_file_name(request.path_params["name"])
        if not name.lower().endswith((*PICTURE_ENDINGS, ".zip", *TABLES)):
            raise RefusedError(
                422, f"this is no picture, no .zip and no table ({', '.join(TABLES)})"
            )
        if name.casefold() in map(str.casefold, self._sizes):
            raise RefusedError(
                409, "a file of this name is there already; remove it, or rename this one"
            )
        if len(self._sizes) >= MOST_UPLOADS:
            raise RefusedError(413, f"at most {MOST_UPLOADS} files are taken; send them as a .zip")
        left = MOST_BYTES - sum(self._sizes.values())
        if left <= 0:
            raise RefusedError(413, f"all files together have at most {MOST_BYTES >> 30} GB")
        self._sizes[name] = 0  # nobody else sends it now
        try:
            self._uploads.mkdir(mode=0o700, exist_ok=True)
            path = await receive_file(request, self._uploads, name, min(left, LARGEST_UPLOAD))
            self._sizes[name] = path.stat().st_size
        except BaseException:
            self._sizes.pop(name, None)
            raise
        return JSONResponse({"name": name, "size": self._sizes[name]})

    async def remove_files(self, request: Request) -> Response:
        """Remove a file that was sent, or all."""
        body = await read_body(request, RemoveBody)
        wanted = [name for name in self._sizes if body.name in (None, name)]
        for name in wanted:
            del self._sizes[name]
            (self._uploads / name).unlink(missing_ok=True)
        return JSONResponse({"removed": len(wanted)})

    # ---- the project

    async def count_items(self, request: Request) -> Response:
        """Return how many items there are, and of which kind."""
        body = await read_body(request, ItemsBody)
        try:
            n_items, kind = await run_in_threadpool(self._count_items, body)
        except (ComesError, RefusedError) as error:
            raise _FieldError("items", error) from None
        return JSONResponse({"count": n_items, "kind": kind})

    async def make_project(self, request: Request) -> Response:
        """Make the project, and serve it from now on."""
        body = await read_body(request, ProjectBody)
        if not self._making.acquire(blocking=False):
            raise RefusedError(409, "the project is being made")
        try:
            project, told = await run_in_threadpool(self._make_project, body)
        finally:
            self._making.release()
        app = make_app(project, needs_token=self._token is not None, lease=self._lease)
        await self._running.enter_async_context(app.app.router.lifespan_context(app.app))
        self._app = app
        return JSONResponse({"next": "/lead/people", "warnings": told})

    def _find_place(self, body: ItemsBody) -> Path:
        """Return the folder, the .zip or the table of the items."""
        if body.place:
            place = check_place(body.place, is_open=self._token is None)
            if not place.exists():
                raise RefusedError(422, f"{place} does not exist on the server")
            return place
        names = list(self._sizes)
        if not names:
            raise RefusedError(422, "send files, or name a folder on the server")
        if all(name.lower().endswith(PICTURE_ENDINGS) for name in names):
            return self._uploads
        if len(names) > 1:
            raise RefusedError(
                422, "send pictures, or one .zip, or one table; not several of these together"
            )
        return self._uploads / names[0]

    def _count_items(self, body: ItemsBody) -> tuple[int, str]:
        place = self._find_place(body)
        if place.is_dir() or place.suffix.lower() == ".zip":
            return len(image_names(place)), "image"
        return len(read_items(place, text_column=body.text_column or None).names), "text"

    def _make_project(self, body: ProjectBody) -> tuple[Project, list[str]]:
        """Return the project, and what to know about it; raise `_FieldError`, and nothing is made.

        Fields are checked one by one, so that each error stands beside its field.
        """
        field = "classes"
        try:
            with (
                tempfile.TemporaryDirectory() as folder,
                warnings.catch_warnings(record=True) as told,
            ):
                warnings.simplefilter("always", ComesWarning)
                classes = Path(folder) / "classes.parquet"
                names = _write_classes(body.classes, classes)
                read_classes(classes)
                field = "question"
                how = body.question or None, body.asks_yes, body.language, None
                describe_asking(*how, names)
                field = "items"
                n_items, _ = self._count_items(body)
                field = "rate"
                sample_cards(n_items, 1, body.rate, overlap=body.overlap, by=body.by)
                field = "items"
                project = self._create(self._find_place(body), classes, body)
        except (ComesError, RefusedError) as error:
            raise _FieldError(field, error) from None
        if self._token is not None:
            make_link(project, "lead", LEAD, self._token)
        if self._addresses:
            project.write_setting(ADDRESSES, json.dumps(list(self._addresses)))
        return project, list(dict.fromkeys(str(one.message) for one in told))

    def _create(self, place: Path, classes: Path, body: ProjectBody) -> Project:
        """Create the project; pictures that were sent move to a folder beside it."""
        is_sent = place == self._uploads or place.parent == self._uploads
        is_kept = is_sent and not place.name.lower().endswith(TABLES)
        kept = self._folder.with_name(f"{self._folder.name}-items")
        if is_kept:
            if kept.exists():
                raise RefusedError(409, f"{kept.name} exists already; move it away")
            self._uploads.rename(kept)
            place = kept / place.relative_to(self._uploads)
        try:
            given = body.model_dump(exclude={"place", "classes"})
            given |= {"text_column": body.text_column or None, "question": body.question or None}
            project = create_project(self._folder, place, classes, **given)
        except BaseException:
            if is_kept:
                kept.rename(self._uploads)
            raise
        if not is_kept:
            shutil.rmtree(self._uploads, ignore_errors=True)
        return project


def _write_classes(text: str, path: Path) -> list[str]:
    """Write the classes of some lines, "name" or "name: description", to a table."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines:
        raise RefusedError(422, "write the name of a class on every line")
    rows = [line.partition(": ") for line in lines]
    names = [name.strip() for name, _, _ in rows]
    told = [description.strip() for _, _, description in rows]
    pd.DataFrame({"class": names, "description": told}).to_parquet(path)
    return names
