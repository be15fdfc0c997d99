"""What a refusal must say, for tests that go through a table of them."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from comes.errors import ComesError


@contextmanager
def refused(message: str) -> Iterator[None]:
    """Expect a `ComesError` that matches a message; a failure names the message."""
    try:
        yield
    except ComesError as error:
        assert re.search(message, str(error)), f"expected {message!r}; got {str(error)!r}"
    else:
        pytest.fail(f"nothing was refused; expected {message!r}")
