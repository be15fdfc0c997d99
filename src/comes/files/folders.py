"""Where data lies: the folder of data sets, the cache of downloads, and paths with ``~``."""

import os
from pathlib import Path

from comes.errors import ComesError


def cache_folder() -> Path:
    """Return the folder of downloads: ``$COMES_CACHE``, or the user's cache.

    Examples
    --------
    >>> from unittest import mock
    >>> with mock.patch.dict(os.environ, COMES_CACHE="/data/cache"):
    ...     cache_folder().as_posix()
    '/data/cache'
    """
    named = os.environ.get("COMES_CACHE")
    if named:
        return expanded(named)
    import pooch

    return expanded(pooch.os_cache("comes"))


def data_folder() -> Path | None:
    """Return the folder that ``$COMES_DATA`` names, or None where it is not set.

    Examples
    --------
    >>> import tempfile
    >>> from unittest import mock
    >>> with mock.patch.dict(os.environ, COMES_DATA=tempfile.gettempdir()):
    ...     data_folder() == Path(tempfile.gettempdir())
    True
    """
    name = os.environ.get("COMES_DATA")
    if not name:
        return None
    folder = expanded(name)
    if not os.path.isdir(folder):
        raise ComesError(f"COMES_DATA names {folder}, which is not a folder. Correct or unset it.")
    return folder


def expanded(path: str | Path) -> Path:
    """Return the path with ``~`` filled in; raise if there is no such user.

    Examples
    --------
    >>> expanded("~/photos.csv") == Path.home() / "photos.csv"
    True
    """
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        raise ComesError(f"{path} cannot be found: {error}. Write the path out.") from None
