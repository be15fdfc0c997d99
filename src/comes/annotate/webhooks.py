"""Word to another program, over http, that answers were exported."""

import json
import time
from collections.abc import Callable, Mapping
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from comes.errors import ComesError

ATTEMPTS = 4
TIMEOUT = 10.0  # seconds for one attempt
FIRST_PAUSE = 1.0  # seconds, twice as long each time


class _NoRedirect(HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:  # what was addressed to one goes to no other
        return None


def check_webhook(address: str) -> str:
    """Return the address of a webhook; raise if it is not one of http or https.

    Examples
    --------
    >>> check_webhook("https://example.org/hook")
    'https://example.org/hook'
    """
    try:
        parts = urlsplit(address)
        is_web = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_web = False
    if not is_web:
        raise ComesError(
            f"a webhook must be an address of http or https; got {address!r}. Give one such as "
            "https://example.org/hook."
        )
    return address


def post_webhook(
    address: str,
    content: Mapping[str, Any],
    *,
    attempts: int = ATTEMPTS,
    timeout: float = TIMEOUT,
    pause: Callable[[float], None] = time.sleep,
) -> int:
    """Post json to an address, again if it fails for the moment; return how many attempts it took.

    Parameters
    ----------
    address : str
    content : mapping
    attempts : int
        At most so many. What the other side refuses (a status of 4xx, but not 408 or 429) is not
        sent again.
    timeout : float
        Seconds for one attempt.
    pause : callable (seconds) -> None
        Waits between attempts: 1, 2, 4 ... seconds.

    Examples
    --------
    >>> post_webhook("https://example.org/hook", {"answers": 3})  # doctest: +SKIP
    1
    """
    request = Request(
        check_webhook(address),
        json.dumps(dict(content)).encode(),
        {"Content-Type": "application/json", "User-Agent": "comes"},
    )
    opener, trouble = build_opener(_NoRedirect), ""
    for attempt in range(1, attempts + 1):
        try:
            with opener.open(request, timeout=timeout):
                return attempt
        except HTTPError as error:
            error.close()
            trouble = f"it replied {error.code}"
            if error.code < 500 and error.code not in (408, 429):
                break
        except (URLError, OSError) as error:
            trouble = str(getattr(error, "reason", "") or error)
        if attempt < attempts:
            pause(FIRST_PAUSE * 2 ** (attempt - 1))
    raise ComesError(
        f"the webhook {address} was not reached ({trouble}) in {attempt} attempts. The file is "
        "written; correct the address, or start the program behind it."
    )
