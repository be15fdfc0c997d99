"""The one exception and the one warning that comes raises on purpose, and the form of messages.

A message says what was expected, what was given, and what to do.
"""

import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

__all__ = ["ComesError", "ComesWarning", "counted", "first_line", "listed"]


class ComesError(ValueError):
    """Input that cannot be used.

    Examples
    --------
    >>> from comes.answers.convert import as_relevant
    >>> try:
    ...     as_relevant([[0, 7]])
    ... except ComesError as error:
    ...     print(error)
    relevant labels must be 0 or 1; got 7 at row 0, label 1. 1 means relevant.
    """


class ComesWarning(UserWarning):
    """Input that can be used, but perhaps not with the result that was expected.

    Examples
    --------
    >>> import warnings
    >>> from comes.answers.convert import match_names
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always", ComesWarning)
    ...     columns = match_names(["a", "b"], ["x", "y"])
    >>> print(caught[0].message)
    labels are matched by position, as no name agrees: 'a' for 'x', 'b' for 'y'.
    """


def warn_user(message: str) -> None:
    """Warn at the line, outside of comes, that led here."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("comes."):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, ComesWarning, stacklevel=level)


@contextmanager
def reading_as(form: str, where: str | Path) -> Iterator[None]:
    """Let any error in the block, which reads a file, say which file and what was wanted."""
    try:
        yield
    except MemoryError:
        raise
    except Exception as error:  # a damaged file makes libraries raise almost anything
        is_missing = isinstance(error, KeyError) and " " not in str(error)
        reason = f"{error} is missing" if is_missing else first_line(error).rstrip(".")
        raise ComesError(f"{where} cannot be read as {form}: {reason}.") from None


def first_line(error: BaseException) -> str:
    r"""Return the first line of an error's message; if it has none, the name of its class.

    Examples
    --------
    >>> first_line(OSError("disk full\nerrno 28"))
    'disk full'
    >>> first_line(TimeoutError())
    'TimeoutError'
    """
    return next(iter(str(error).splitlines()), type(error).__name__)


def counted(number: int, noun: str, verb: str = "") -> str:
    """Return a number with its noun, and a verb if there is one, of one or of many.

    Examples
    --------
    >>> counted(1, "label"), counted(2, "row", "have no candidate")
    ('1 label', '2 rows have no candidate')
    >>> counted(1, "row", "have no candidate")
    '1 row has no candidate'
    """
    if number == 1:
        first, _, rest = verb.partition(" ")
        forms = {"are": "is", "were": "was", "have": "has"}
        verb = " ".join([forms.get(first, f"{first}s"), rest]) if verb else ""
    name = noun if number == 1 else f"{noun}s"
    return " ".join(filter(None, [str(number), name, verb]))


def listed(names: Sequence[str], most: int = 8) -> str:
    """Return names as messages show them: the first few, then how many more there are.

    Examples
    --------
    >>> listed(["sea", "sky", "tree"], most=2)
    "'sea', 'sky' and 1 more"
    """
    shown = ", ".join(repr(name) for name in names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"
