"""Requests that are dealt with when their bodies are there.

A request whose body never comes then costs next to nothing: no route, no guard, no error.
"""

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from comes.annotate.web.app import LARGEST_BODY


class WholeBodies:
    """Waits for small bodies; large ones, and those of unknown length, are the guard's affair.

    Parameters
    ----------
    app : ASGI application
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Respond to a request."""
        if scope["type"] != "http" or not _has_small_body(Headers(scope=scope)):
            await self._app(scope, receive, send)
            return
        body, is_whole = bytearray(), False
        while not is_whole:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            body += message.get("body", b"")
            is_whole = not message.get("more_body", False)
        whole: list[Message] = [{"type": "http.request", "body": bytes(body), "more_body": False}]

        async def receive_whole() -> Message:
            return whole.pop() if whole else await receive()

        await self._app(scope, receive_whole, send)


def _has_small_body(headers: Headers) -> bool:
    length = headers.get("content-length", "")
    return length.isdecimal() and len(length) < 10 and 0 < int(length) <= LARGEST_BODY
