"""Open data: a file, whose ending says the format, or a data set that has a name."""

import difflib
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from comes.datasets.catalogue import KNOWN, find_named, read_named
from comes.datasets.dataset import Dataset, check_features, join_features, join_images
from comes.datasets.formats import FORMATS, SHARED_FIELDS, TABLE, find_format
from comes.datasets.images import Images, image_names, open_images
from comes.datasets.labels import ITEM_COLUMNS, RELEVANT
from comes.datasets.options import ReadOptions, as_options
from comes.datasets.table import Table, find_ending, is_table_name, read_table
from comes.datasets.table_datasets import read_table_features, select_features, table_dataset
from comes.errors import ComesError
from comes.files import expanded

# Fields that are applied after a data set with a name was read.
NAMED_FIELDS = ("labels_are", "label_names", "features", "feature_columns", "item", "n_features")
OF_ANSWERS = {"labels", "words", "long", "labels_are"}  # options that say nothing about the truth


def open_dataset(which: str | Path, options: ReadOptions | None = None, **fields: Any) -> Dataset:
    r"""Read a file, or a data set that has a name.

    The ending of a file tells its format; docs/guide/data.md describes them. Messages number the
    rows of a table as the file does: the line that names the columns is row 1.

    Parameters
    ----------
    which : str or Path
        "photos.csv", "YeastBP", "scene:train". A file of that name comes first, a folder does not.
        What has a name is downloaded if need be.
    options : ReadOptions, optional
        What the columns and labels mean, where the file does not say so. A field that does not
        apply to the format is an error.
    **fields
        The fields of `ReadOptions`, instead.

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
    >>> _ = path.write_text("photo,red,maybe\np1,0.1,sky;sea\np2,0.7,sky\n")
    >>> photos = open_dataset(path, labels=["maybe"], item="photo")
    >>> photos.label_names, photos.items
    (['sea', 'sky'], ['p1', 'p2'])
    """
    options = as_options(options, fields)
    path = expanded(which)
    if not os.path.isfile(path) and _is_name(str(which)):
        return _open_named(str(which), options)
    return open_file(path, options)


def open_file(path: Path, options: ReadOptions, table: Table | None = None) -> Dataset:
    """Return the data set of a file, or of a table that is open already."""
    path = _check_readable(path)
    known = find_format(path)
    _refuse_fields(options, (*known.fields, *SHARED_FIELDS), f"{path.suffix} files")
    with _name_in_errors(path):
        dataset = known.read(path, options) if table is None else table_dataset(table, options)
    return _complete_dataset(dataset, options, path.name, known.fields)


def open_truth(which: str | Path, options: ReadOptions | None = None) -> Dataset:
    """Open a file of true labels; the options are those of the data beside it.

    Columns that hold labels in the data hold true labels here, unless a table says itself which do
    ("relevant", "relevant:sky"). Options that do not apply are left out.
    """
    path = expanded(which)
    if options is None or not os.path.isfile(path) or find_ending(path) not in FORMATS:
        return open_dataset(which)
    known = find_format(path)
    names = {*known.fields, *SHARED_FIELDS} - OF_ANSWERS
    of_truth = ReadOptions(**{name: getattr(options, name) for name in names})
    if "relevant" in names and of_truth.relevant is None:
        of_truth = replace(of_truth, relevant=options.labels)
    if known is not TABLE:
        return open_file(path, of_truth)
    with Table(_check_readable(path)) as table:
        if any(name == "relevant" or name.startswith(RELEVANT) for name in table.columns):
            of_truth = replace(of_truth, relevant=None, ignore=None)
        if of_truth.item not in table.columns and ITEM_COLUMNS[0] in table.columns:
            of_truth = replace(of_truth, item=None)
        return open_file(path, of_truth, table)


def _open_named(which: str, options: ReadOptions) -> Dataset:
    """Return a data set that has a name."""
    name, _, split = which.partition(":")
    named = find_named(name)
    assert named is not None
    _refuse_fields(options, (*named.fields, *NAMED_FIELDS), named.name)
    return _complete_dataset(read_named(named, split, options), options, named.name)


def read_features(
    which: str | Path,
    columns: Sequence[str] | None = None,
    n_features: int | None = None,
    *,
    words: Sequence[str] | None = None,
    item: str | None = None,
    usual_item: str | None = None,
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
        The column of a table that names the items.
    usual_item : str, optional
        The column that names them otherwise, if it is there.

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
    if item is not None and not is_table_name(which):
        raise ComesError(
            f"item (--item) names a column of a table, and {which} is none. Leave it out."
        )
    options = ReadOptions(feature_columns=columns, n_features=n_features)
    if not os.path.isfile(expanded(which)) and _is_name(str(which)):
        dataset = open_dataset(which, options)
        return dataset.known_features(), dataset.items
    path = _check_readable(which)
    with _name_in_errors(path):
        options = replace(options, category=words, item=usual_item)
        if item is not None:
            return read_table_features(path, options, item)
        return _read_features(path, options)


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
    path, images = expanded(which), ReadOptions(images=images).images  # raises if it is empty
    if os.path.isdir(path) or path.suffix.lower() == ".zip":
        if images is not None:
            raise ComesError(f"{path} holds images itself. Leave the other folder out.")
        return open_images(path, image_names(path), skip_broken)[0]
    if not os.path.isfile(path) and _is_name(str(which)):
        return open_dataset(which, skip_broken=skip_broken).known_images()
    frame = read_table(_check_readable(which))
    column = next((name for name in ITEM_COLUMNS if name in frame.columns), None)
    if column is None or images is None:
        raise ComesError(
            f"{path.name} should have a column that names images ({', '.join(ITEM_COLUMNS)}), and "
            "the folder that they are in must be given (--images); or give that folder alone."
        )
    return open_images(images, [str(name) for name in frame[column]], skip_broken)[0]


def _complete_dataset(
    dataset: Dataset, options: ReadOptions, source: str, done: Sequence[str] = ()
) -> Dataset:
    """Apply the fields that hold for any source, except those that its reader has applied."""
    if "labels_are" not in done or options.labels_are == "candidates":
        dataset = dataset.with_labels_as(options.labels_are, source)
    if options.label_names is not None and dataset.label_names != list(options.label_names):
        dataset = dataset.align_labels(options.label_names)
    if options.images is not None:
        return join_images(dataset, options.images, options.skip_broken)
    if options.skip_broken and not isinstance(dataset.X, Images):
        raise ComesError("broken images can be skipped where there are images (--images).")
    if options.features is not None:
        path = _check_readable(options.features)
        with _name_in_errors(path):
            return join_features(dataset, *_read_features(path, options))
    X = dataset.X if "feature_columns" in done else _select_columns(dataset.X, options)
    return dataset if X is dataset.X else replace(dataset, X=X)


def _read_features(path: Path, options: ReadOptions) -> tuple[Any, list[str] | None]:
    """Return the features of a file and the names of the items."""
    known = find_format(path)
    if known.read_features is not None:
        X, items = known.read_features(path, options)
        check_features(X)
    else:
        dataset = known.read(path, ReadOptions(n_features=options.n_features))
        X, items = dataset.known_features(), dataset.items
    return X if "feature_columns" in known.fields else _select_columns(X, options), items


def _select_columns(X: Any, options: ReadOptions) -> Any:
    """Return the wanted feature columns, if features have names."""
    if options.feature_columns is None or not isinstance(X, pd.DataFrame):
        return X
    return select_features(X, options.feature_columns)


def _refuse_fields(options: ReadOptions, known: Sequence[str], what: str) -> None:
    """Raise at the first field that does not apply."""
    foreign = [name for name in options.given if name not in known]
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
    """Return whether a data set that has a name is meant."""
    return find_named(which.partition(":")[0]) is not None


def _check_readable(path: str | Path) -> Path:
    """Return the path of a file that is there and not empty, else raise."""
    path = expanded(path)
    if os.path.isdir(path):
        raise ComesError(
            f"{path} is a folder; expected a file. For a folder of images, name the file with "
            "their labels."
        )
    if not os.path.exists(path):
        raise _missing_error(path)
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise ComesError(
            f"{path} is a pipe or a device; expected a file, whose ending says the format. Save "
            "what it gives to a file first."
        )
    if not os.access(path, os.R_OK):
        raise ComesError(f"{path} cannot be read: permission is denied.")
    if path.stat().st_size == 0:
        raise ComesError(f"{path} is empty; expected a data set with at least one row.")
    return path


def _missing_error(path: Path) -> ComesError:
    """Return the error for a file that does not exist, with a suggestion."""
    shown = str(path) if len(str(path)) <= 200 else f"{str(path)[:200]}..."
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
    return ComesError(f"{shown} does not exist. {hint}")
