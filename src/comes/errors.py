"""The one exception and the one warning that comes raises on purpose."""


class ComesError(ValueError):
    """Input that cannot be used; the message says what was wanted, what came, what to do."""


class ComesWarning(UserWarning):
    """Input that can be used, but not in the way one might think."""


def first_line(error: BaseException) -> str:
    """Return what an error of another library says, in one line."""
    return next(iter(str(error).splitlines()), type(error).__name__)
