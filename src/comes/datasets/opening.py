"""Open data: a file, whose ending says the format, or a data set that has a name."""

import difflib
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from comes.datasets.catalogue import KNOWN
from comes.datasets.column_roles import ITEM_COLUMNS
from comes.datasets.dataset import Dataset
from comes.datasets.feature_matrices import check_features
from comes.datasets.formats import SHARED_FIELDS, find_format
from comes.datasets.images import Images, image_names, open_images
from comes.datasets.joining import join_features, join_images
from comes.datasets.named import find_named, read_named
from comes.datasets.openml import read_openml
from comes.datasets.reading import Reading, as_reading
from comes.datasets.tables import read_table, select_features
from comes.errors import ComesError
from comes.files import cache_folder, expanded

# Fields that are applied after a data set with a name was read.
NAMED_FIELDS = ("labels_are", "label_names", "features", "feature_columns", "item", "n_features")


def open_dataset(which: str | Path, reading: Reading | None = None, **fields: Any) -> Dataset:
    r"""Read a file, a data set that has a name, or one of OpenML.

    Parameters
    ----------
    which : str or Path
        "photos.csv", "YeastBP", "scene:train", "openml:emotions", "openml:41465". A file of that
        name comes first, a folder does not.
    reading : Reading, optional
        What the columns and labels mean, where the file does not say so.
    **fields
        The fields of a `Reading`, instead of one.

    Returns
    -------
    dataset : Dataset

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "photos.csv"
    >>> _ = path.write_text("red,has_sky,has_sea\n0.1,1,0\n0.7,1,1\n")
    >>> print(open_dataset(path, labels=["has_*"]))
    2 rows, 1 feature, 2 labels, 1.50 candidates per row
    """
    reading = as_reading(reading, fields)
    path = expanded(which)
    if os.path.isfile(path) or not _is_name(str(which)):
        return read_dataset(path, reading)
    name, _, split = str(which).partition(":")
    if name.lower() == "openml":
        return _open_openml(split, reading)
    return load_dataset(name, split, reading)


def read_dataset(path: str | Path, reading: Reading | None = None, **fields: Any) -> Dataset:
    r"""Read features and labels from a file.

    The ending of the name tells the format; docs/guide/data.md describes them.

    Parameters
    ----------
    path : str or Path
    reading : Reading, optional
        What the columns and labels mean, where the file does not say so. A field that does not
        apply to the format is an error.
    **fields
        The fields of a `Reading`, instead of one.

    Returns
    -------
    dataset : Dataset

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "photos.csv"
    >>> _ = path.write_text("photo,red,maybe\np1,0.1,sky;sea\np2,0.7,sky\n")
    >>> photos = read_dataset(path, labels=["maybe"], item="photo")
    >>> photos.label_names, photos.items
    (['sea', 'sky'], ['p1', 'p2'])
    >>> photos.candidates
    array([[ True,  True],
           [False,  True]])
    """
    reading = as_reading(reading, fields)
    path = _check_readable(path)
    found = find_format(path)
    _refuse_fields(reading, (*found.fields, *SHARED_FIELDS), f"{path.suffix} files")
    with _name_in_errors(path):
        dataset = found.read(path, reading)
    return _complete_dataset(dataset, reading, path.name, found.fields)


def load_dataset(
    name: str, split: str = "", reading: Reading | None = None, **fields: Any
) -> Dataset:
    """Read a data set by its name, downloading it if need be.

    Parameters
    ----------
    name : str
        One of `KNOWN`, whatever the case of its letters.
    split : str
        An official split. By default the whole data set, if it is published as one.
    reading : Reading, optional
        ``skip_broken`` for images, ``difficult`` for VOC, ``unannotated`` for COCO2014, and what
        applies to every data set, such as ``labels_are``.
    **fields
        The fields of a `Reading`, instead of one.

    Returns
    -------
    dataset : Dataset

    Examples
    --------
    >>> load_dataset("YeastPB")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    comes.errors.ComesError: no data set is called 'YeastPB'. Did you mean 'YeastBP'? ...
    """
    reading = as_reading(reading, fields)
    named = find_named(name)
    if named is None:
        near = difflib.get_close_matches(name, KNOWN, n=1, cutoff=0.5)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise ComesError(f"no data set is called {name!r}.{hint} 'comes datasets' lists them.")
    _refuse_fields(reading, (*named.fields, *NAMED_FIELDS), named.name)
    dataset = read_named(named, split, reading)
    return _complete_dataset(dataset, reading, named.name)


def _open_openml(which: str, reading: Reading) -> Dataset:
    """Return a data set of OpenML."""
    _refuse_fields(reading, NAMED_FIELDS, "a data set of OpenML")
    dataset = read_openml(which, cache_folder() / "openml")
    return _complete_dataset(dataset, reading, which)


def read_features(
    which: str | Path,
    columns: Sequence[str] | None = None,
    n_features: int | None = None,
    *,
    words: Sequence[str] | None = None,
    item: str | None = None,
) -> tuple[Any, list[str] | None]:
    r"""Read features alone, for prediction, and the names of the items where there are any.

    Parameters
    ----------
    which : str or Path
        A file, or a name as in `open_dataset`.
    columns : sequence of str, optional
        Feature columns of a table.
    n_features : int, optional
        The number of features of a LIBSVM file, which may not show the last ones.
    words : sequence of str, optional
        Columns of a table whose cells are read as they are written: 007 is no number.
    item : str, optional
        The column that names the items, if it is there.

    Returns
    -------
    X : array, DataFrame or CSR matrix of shape (n_samples, n_features)
    items : list of str, or None

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "new.csv"
    >>> _ = path.write_text("item,red,blue\np,0.1,0.9\nq,0.7,0.2\n")
    >>> X, items = read_features(path, ["blue"])
    >>> X["blue"].tolist(), items
    ([0.9, 0.2], ['p', 'q'])
    """
    reading = Reading(feature_columns=columns, n_features=n_features)
    if not os.path.isfile(expanded(which)) and _is_name(str(which)):
        dataset = open_dataset(which, reading)
        return dataset.known_features(), dataset.items
    path = _check_readable(which)
    with _name_in_errors(path):
        X, items = _read_features(path, replace(reading, category=words, item=item))
        if find_format(path).read_features is not None:  # else part of a data set, and checked
            check_features(X)
    return X, items


def read_images(
    which: str | Path, images: str | Path | None = None, skip_broken: bool = False
) -> Images:
    """Return images alone, for prediction.

    Parameters
    ----------
    which : str or Path
        A folder or a .zip file, all of whose pictures are taken, ordered by name; or a table with
        a column that names them (item, image, file, filename or path); or the name of a data set
        of images.
    images : str or Path, optional
        The folder or .zip file of the images that a table names.
    skip_broken : bool
        Leave out images that are missing or cannot be read, with a warning.

    Returns
    -------
    images : Images

    Examples
    --------
    >>> import tempfile
    >>> from PIL import Image
    >>> folder = Path(tempfile.mkdtemp())
    >>> Image.new("RGB", (5, 4), "red").save(folder / "red.png")
    >>> read_images(folder).names
    ['red.png']
    """
    path, images = expanded(which), Reading(images=images).images  # raises if it is empty
    if os.path.isdir(path) or path.suffix.lower() == ".zip":
        if images is not None:
            raise ComesError(f"{path} holds images itself. Leave the other folder out.")
        return open_images(path, image_names(path), skip_broken)[0]
    if not os.path.isfile(path) and _is_name(str(which)):
        return open_dataset(which, skip_broken=skip_broken).known_images()
    table = read_table(_check_readable(which))
    column = next((name for name in ITEM_COLUMNS if name in table.columns), None)
    if column is None or images is None:
        raise ComesError(
            f"{path.name} should have a column that names images ({', '.join(ITEM_COLUMNS)}), and "
            "the folder that they are in must be given (--images); or give that folder alone."
        )
    return open_images(images, [str(name) for name in table[column]], skip_broken)[0]


def _complete_dataset(
    dataset: Dataset, reading: Reading, source: str, done: Sequence[str] = ()
) -> Dataset:
    """Apply the fields that hold for any source, except those that its reader has applied."""
    if "labels_are" not in done or reading.labels_are == "candidates":
        dataset = dataset.with_labels_as(reading.labels_are, source)
    if reading.label_names is not None and dataset.label_names != list(reading.label_names):
        dataset = dataset.align_labels(reading.label_names)
    if reading.images is not None:
        return join_images(dataset, reading.images, reading.skip_broken)
    if reading.skip_broken and not isinstance(dataset.X, Images):
        raise ComesError("broken images can be skipped where there are images (--images).")
    if reading.features is not None:
        path = _check_readable(reading.features)
        with _name_in_errors(path):
            return join_features(dataset, *_read_features(path, reading))
    X = dataset.X if "feature_columns" in done else _select_columns(dataset.X, reading)
    return dataset if X is dataset.X else replace(dataset, X=X)


def _read_features(path: Path, reading: Reading) -> tuple[Any, list[str] | None]:
    """Return the features of a file and the names of the items."""
    found = find_format(path)
    if found.read_features is not None:
        X, items = found.read_features(path, reading)
    else:
        dataset = found.read(path, Reading(n_features=reading.n_features))
        X, items = dataset.known_features(), dataset.items
    return X if "feature_columns" in found.fields else _select_columns(X, reading), items


def _select_columns(X: Any, reading: Reading) -> Any:
    """Return the wanted feature columns, if features have names."""
    if reading.feature_columns is None or not isinstance(X, pd.DataFrame):
        return X
    return select_features(X, reading.feature_columns)


def _refuse_fields(reading: Reading, known: Sequence[str], what: str) -> None:
    """Raise at the first field that does not apply."""
    foreign = [name for name in reading.given if name not in known]
    if foreign:
        raise ComesError(f"{foreign[0]!r} does not apply to {what}. Leave it out.")


@contextmanager
def _name_in_errors(path: Path) -> Iterator[None]:
    """Let a message about the content of a file name the file."""
    try:
        yield
    except ComesError as error:
        if path.name in str(error):
            raise
        raise ComesError(f"{path.name}: {error}") from None


def _is_name(which: str) -> bool:
    """Return whether a data set that has a name, or one of OpenML, is meant."""
    name, _, split = which.partition(":")
    return find_named(name) is not None or (name.lower() == "openml" and bool(split))


def _check_readable(path: str | Path) -> Path:
    """Return the path of a file that is there and not empty, else raise."""
    path = expanded(path)
    if os.path.isdir(path):
        raise ComesError(
            f"{path} is a folder; expected a file. For a folder of images, name the file with "
            "their labels."
        )
    if not os.path.isfile(path):
        raise _make_missing_error(path)
    if not os.access(path, os.R_OK):
        raise ComesError(f"{path} cannot be read: permission is denied.")
    if path.stat().st_size == 0:
        raise ComesError(f"{path} is empty; expected a data set with at least one row.")
    return path


def _make_missing_error(path: Path) -> ComesError:
    """Return the error for a file that does not exist, with a suggestion."""
    readable = os.path.isdir(path.parent) and os.access(path.parent, os.R_OK)
    names = [name for name in (os.listdir(path.parent) if readable else []) if name != path.name]
    near = difflib.get_close_matches(path.name, names, n=1)
    known = difflib.get_close_matches(str(path), KNOWN, n=1)
    if near:
        hint = f"Did you mean {path.parent / near[0]}?"
    elif known:
        hint = f"Did you mean the data set {known[0]}?"
    else:
        hint = "Check the path; 'comes datasets' lists the data sets that have a name."
    return ComesError(f"{path} does not exist. {hint}")
