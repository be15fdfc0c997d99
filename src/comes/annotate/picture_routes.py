"""Pictures of items, by number."""

import io
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from comes.annotate.site import Site
from comes.errors import ComesError

SHOWN = {
    "JPEG": "image/jpeg",
    "MPO": "image/jpeg",  # of a camera that appends a second image
    "PNG": "image/png",
    "GIF": "image/gif",
    "WEBP": "image/webp",
}


class PictureRoutes:
    """The pictures of a project."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self.routes = [Route("/items/{number}", self.item)]

    async def item(self, request: Request) -> Response:
        """Send the image with a number."""
        images, number = self._site.project.images, request.path_params["number"]
        row = int(number) - 1 if number.isdecimal() and len(number) < 10 else -1
        if images is None or not 0 <= row < len(images):
            raise HTTPException(404, "there is no such image")
        content, kind = await run_in_threadpool(_read_image, images, row)
        return Response(
            content, media_type=kind, headers={"Cache-Control": "private, max-age=3600"}
        )


def _read_image(images: Any, row: int) -> tuple[bytes, str]:
    """Return an image in a format that browsers show; refuse a file that is not an image."""
    from PIL import Image

    try:
        content = images.read_bytes(row)
        with Image.open(io.BytesIO(content)) as opened:
            opened.load()
            if opened.format in SHOWN:
                return content, SHOWN[opened.format]
        file = io.BytesIO()
        Image.fromarray(images[row]).save(file, "PNG")
    except (ComesError, OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        raise HTTPException(422, "this image cannot be read") from None
    return file.getvalue(), "image/png"
