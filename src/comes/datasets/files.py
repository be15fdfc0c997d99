"""One door for data: a known name, or a file, read by the ending of its name."""

import difflib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from comes.datasets.annotation_tools import label_studio_dataset, read_prodigy
from comes.datasets.answers import check_answers
from comes.datasets.archive import read_npz, read_npz_features
from comes.datasets.arff import read_arff
from comes.datasets.catalogue import KNOWN
from comes.datasets.coco import Unannotated, coco_dataset, load_json
from comes.datasets.dataset import Dataset, check_features, join_features, join_images
from comes.datasets.download import cache_folder
from comes.datasets.images import Images, image_names, open_images
from comes.datasets.known import find_known, load_dataset
from comes.datasets.openml import read_openml
from comes.datasets.pml import read_pml_mat
from comes.datasets.svmlight import read_svmlight
from comes.datasets.table_datasets import (
    ITEM_COLUMNS,
    LabelColumns,
    read_table_dataset,
    read_table_features,
)
from comes.datasets.tables import read_table, select_features
from comes.errors import ComesError
from comes.files import expanded


class Format(NamedTuple):
    """How files of an ending are read, and which options say something about them."""

    read: Callable[..., Dataset]
    options: tuple[str, ...] = ()


TABLE_OPTIONS = (
    "labels",
    "relevant",
    "ignore",
    "feature_columns",
    "item",
    "long",
    "answers",
    "complementary",
    "label_names",
)


def _read_json(path: Path, *, unannotated: Unannotated | None = None, **options: Any) -> Dataset:
    """Read a COCO file or an export of Label Studio: an object or a list of tasks."""
    content = load_json(path)
    if content == []:
        raise ComesError(f"{path.name} is an empty list; tasks of Label Studio were wanted.")
    if isinstance(content, list):
        if unannotated is not None:
            raise ComesError(f"{path.name} is no COCO file: 'unannotated' says nothing about it.")
        return label_studio_dataset(content, path, **options)
    if set(options) - {"label_names", "complementary"}:
        raise ComesError(f"{path.name} is a COCO file, and says itself what its labels are.")
    dataset = coco_dataset(content, path, unannotated or "drop")
    if unannotated is not None and dataset.candidates is not None:
        raise ComesError(f"{path.name} has verified labels: 'unannotated' says nothing about it.")
    return _meaning(dataset, path, complementary=options.get("complementary", False))


TABLE = Format(read_table_dataset, TABLE_OPTIONS)
SVMLIGHT = Format(read_svmlight, ("label_names", "n_features"))
JSON_OPTIONS = ("labels", "item", "complementary", "label_names", "unannotated")
FORMATS = {
    ".csv": TABLE,
    ".parquet": TABLE,
    ".npz": Format(read_npz),
    ".mat": Format(read_pml_mat),
    ".arff": Format(read_arff, ("labels", "relevant", "ignore", "complementary", "xml")),
    ".svm": SVMLIGHT,
    ".libsvm": SVMLIGHT,
    ".txt": SVMLIGHT,
    ".json": Format(_read_json, JSON_OPTIONS),
    ".jsonl": Format(read_prodigy, ("item", "complementary", "label_names")),
}


def read_dataset(
    path: str | Path,
    *,
    labels: LabelColumns = None,
    relevant: LabelColumns = None,
    ignore: Sequence[str] = (),
    feature_columns: Sequence[str] | None = None,
    features: str | Path | None = None,
    images: str | Path | None = None,
    item: str | None = None,
    long: Sequence[str] | None = None,
    answers: Mapping[str, str] | None = None,
    candidates: bool = False,
    complementary: bool = False,
    label_names: Sequence[str] | None = None,
    xml: str | Path | None = None,
    unannotated: Unannotated | None = None,
    skip_broken: bool = False,
    n_features: int | None = None,
) -> Dataset:
    """Read features and labels from a file.

    The ending tells the format: .csv, .parquet, .npz, .mat (partial multi-label learning), .arff
    (Mulan, MEKA), .svm, .libsvm or .txt (LIBSVM), .json (COCO, Label Studio), .jsonl (Prodigy).

    Parameters
    ----------
    path : str or Path
    labels, relevant : list of str, optional
        Columns of a table or ARFF file with the candidates and with the truth: one per label, by
        name or with wildcards (``["has_*"]``), 0/1 or "no", "maybe" and nothing; or one column of
        label names ("apple;plate"). In a Label Studio export, the ``<Choices>``. Other formats say
        it themselves.
    ignore : list of str
        Columns that are neither label nor feature, by name or with wildcards; they are left out of
        ``labels`` and ``relevant`` too.
    feature_columns : list of str, optional
        Feature columns of a table; by default every other column.
    features : str or Path, optional
        A file of features (.npz, .csv, .parquet) with the same items, for a file of labels.
    images : str or Path, optional
        The folder or .zip file of the images that the items name.
    item : str, optional
        The column or field that names the items.
    long : sequence of three str, optional
        The columns of a table with a row per answer, if not "item", "label" and "answer".
    answers : mapping of str to str, optional
        What the words of the answers mean: "no", "maybe" or "not asked".
    candidates : bool
        The labels are candidates, in a format whose labels are otherwise the truth.
    complementary : bool
        The labels mark what is surely irrelevant.
    label_names : list of str, optional
        All labels there are, in the order wanted. A column of label names may not show them all;
        others are matched by name, or by position where no name agrees.
    xml : str or Path, optional
        The file that names the labels of an ARFF file, if it is not beside it.
    unannotated : {"drop", "keep"}, optional
        What to do with images of a COCO file that have no annotation; dropped by default.
    skip_broken : bool
        Leave images out that are missing or cannot be read, with a warning.
    n_features : int, optional
        How many features there are, of a LIBSVM file that may not show the last ones.

    Returns
    -------
    dataset : Dataset
    """
    path = _existing(path)
    check_answers(answers)
    reader = _format(path)
    given: dict[str, Any] = {
        "labels": labels,
        "relevant": relevant,
        "ignore": ignore,
        "feature_columns": feature_columns,
        "item": item,
        "long": long,
        "answers": answers,
        "complementary": complementary,
        "label_names": label_names,
        "xml": xml,
        "unannotated": unannotated,
        "n_features": n_features,
    }
    given = {name: value for name, value in given.items() if value}
    # Done here for the other formats, or of no use to them.
    ours = {"complementary", "label_names", "feature_columns", "n_features"}
    foreign = [name for name in given if name not in reader.options and name not in ours]
    if foreign:
        raise ComesError(
            f"{foreign[0].replace('_', '-')!r} says nothing about a {path.suffix} file: "
            f"{path.name} says itself what its labels are."
        )
    options = {name: value for name, value in given.items() if name in reader.options}
    if reader is TABLE and (features is not None or images is not None):
        options["without_features"] = True
    if features is not None and images is not None:
        raise ComesError("a data set has features or images; got a file of each. Leave one out.")
    with _naming(path):
        dataset = reader.read(path, **options)
    if "complementary" not in reader.options or candidates:
        dataset = _meaning(dataset, path, candidates, complementary)
    if label_names is not None and dataset.label_names != list(label_names):
        dataset = dataset.with_labels(label_names)
    if images is not None:
        return join_images(dataset, images, skip_broken)
    if skip_broken:
        raise ComesError("broken images can be skipped where there are images (--images).")
    return _with_features(dataset, features, feature_columns, item, n_features)


def read_features(
    which: str | Path, columns: Sequence[str] | None = None, n_features: int | None = None
) -> tuple[Any, list[str] | None]:
    """Read features alone, for prediction, and the names of the items where there are any.

    Parameters
    ----------
    which : str or Path
        A file, or a name as in `open_dataset`.
    columns : sequence of str, optional
        Feature columns of a table.
    n_features : int, optional
        As in `read_dataset`.
    """
    if not os.path.isfile(expanded(which)) and _is_name(str(which)):
        dataset = open_dataset(which, feature_columns=columns)
        return dataset.known_features(), dataset.items
    path = _existing(which)
    with _naming(path):
        X, items = _read_features(path, columns, n_features=n_features)
        check_features(X)
    return X, items


def read_images(
    which: str | Path, images: str | Path | None = None, skip_broken: bool = False
) -> Images:
    """Return images alone, for prediction.

    Parameters
    ----------
    which : str or Path
        A folder or a .zip file, of which every picture is taken in the order of names; or a table
        with a column that names them (item, image, file, filename or path); or the name of a data
        set of images.
    images : str or Path, optional
        Where the images are that a table names.
    skip_broken : bool
        Leave images out that are missing or cannot be read, with a warning.
    """
    path = expanded(which)
    if os.path.isdir(path) or path.suffix.lower() == ".zip":
        if images is not None:
            raise ComesError(f"{path} holds images itself; leave the other folder out.")
        return open_images(path, image_names(path), skip_broken)[0]
    if not os.path.isfile(path) and _is_name(str(which)):
        return open_dataset(which, skip_broken=skip_broken).known_images()
    table = read_table(_existing(which))
    column = next((name for name in ITEM_COLUMNS if name in table.columns), None)
    if column is None or images is None:
        raise ComesError(
            f"{path.name} should have a column that names images ({', '.join(ITEM_COLUMNS)}), and "
            "the folder that they are in must be given (--images); or give that folder alone."
        )
    return open_images(images, [str(name) for name in table[column]], skip_broken)[0]


def open_dataset(which: str | Path, **options: Any) -> Dataset:
    """Read a file, a known data set by its name, or one of OpenML.

    Parameters
    ----------
    which : str or Path
        "photos.csv", "YeastBP", "scene:train", "openml:emotions", "openml:41465". A file of that
        name comes first, a folder does not.
    **options
        Those of `read_dataset` or, for names, of `load_dataset`; None and empty ones count as not
        given.

    Returns
    -------
    dataset : Dataset
    """
    options = {name: value for name, value in options.items() if value}
    name, _, split = str(which).partition(":")
    path = expanded(which)
    if os.path.isfile(path) or not _is_name(str(which)):
        if "difficult" in options:
            raise ComesError("'difficult' is a choice for VOC, and says nothing about a file.")
        return read_dataset(path, **options)
    meaning = {key: options.pop(key, False) for key in ("candidates", "complementary")}
    label_names = options.pop("label_names", None)
    joined = [options.pop(k, None) for k in ("features", "feature_columns", "item", "n_features")]
    if name.lower() == "openml" and split:
        if options:
            raise ComesError(f"{next(iter(options))!r} says nothing about a data set of OpenML.")
        dataset = read_openml(split, cache_folder() / "openml")
    else:
        dataset = load_dataset(name, split, **options)
    dataset = _meaning(dataset, Path(which), **meaning)
    dataset = dataset if label_names is None else dataset.with_labels(label_names)
    return _with_features(dataset, *joined)


def _with_features(
    dataset: Dataset,
    features: str | Path | None,
    columns: Sequence[str] | None,
    item: str | None,
    n_features: int | None,
) -> Dataset:
    """Return the data set with the features of another file, or with some of its own."""
    if features is not None:
        path = _existing(features)
        with _naming(path):
            return join_features(dataset, *_read_features(path, columns, item, n_features))
    if columns and isinstance(dataset.X, pd.DataFrame):
        return replace(dataset, X=select_features(dataset.X, columns))
    return dataset


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Let a message about the content of a file name the file."""
    try:
        yield
    except ComesError as error:
        if path.name in str(error):
            raise
        raise ComesError(f"{path.name}: {error}") from None


def _is_name(which: str) -> bool:
    """Return whether a known data set, or one of OpenML, is meant."""
    name, _, split = which.partition(":")
    return find_known(name) is not None or (name.lower() == "openml" and bool(split))


def _meaning(
    dataset: Dataset, path: Path, candidates: bool = False, complementary: bool = False
) -> Dataset:
    """Return the data set with its one kind of labels read as what the user says they are."""
    if not candidates and not complementary:
        return dataset
    if candidates and complementary:
        raise ComesError("labels are either candidates or complementary; got both.")
    if dataset.candidates is not None:
        if complementary == dataset.from_complementary:
            return dataset
        raise ComesError(
            f"{path.name} says itself that its labels are "
            f"{'complementary' if dataset.from_complementary else 'candidates'}. Complementary "
            "labels are an array 'complementary' in an .npz file, or columns of a .csv or .parquet "
            "file."
        )
    marked = dataset.known_relevant()
    return replace(
        dataset,
        candidates=~marked if complementary else marked,
        relevant=None,
        from_complementary=complementary,
    )


def _read_features(
    path: Path,
    columns: Sequence[str] | None,
    item: str | None = None,
    n_features: int | None = None,
) -> tuple[Any, list[str] | None]:
    reader = _format(path)
    if reader is TABLE:
        return read_table_features(path, columns, item)
    if path.suffix.lower() == ".npz":
        X, items = read_npz_features(path)
    else:
        options = {"n_features": n_features} if reader is SVMLIGHT else {}
        dataset = reader.read(path, **options)
        X, items = dataset.known_features(), dataset.items
    if columns and isinstance(X, pd.DataFrame):
        X = select_features(X, columns)
    return X, items


def _format(path: Path) -> Format:
    found = FORMATS.get(path.suffix.lower())
    if found is None:
        *endings, last = FORMATS
        raise ComesError(
            f"{path.name} should end in {', '.join(endings)} or {last}; got "
            f"{path.suffix or 'no ending'}."
        )
    return found


def _existing(path: str | Path) -> Path:
    path = expanded(path)
    if os.path.isdir(path):
        raise ComesError(
            f"{path} is a folder; a file was wanted. Of a folder of images, the file is the one "
            "with their labels."
        )
    if not os.path.isfile(path):
        raise _nothing_called(path)
    if not os.access(path, os.R_OK):
        raise ComesError(f"{path} cannot be read: permission is denied.")
    if path.stat().st_size == 0:
        raise ComesError(f"{path} is empty; a data set with at least one row was wanted.")
    return path


def _nothing_called(path: Path) -> ComesError:
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
