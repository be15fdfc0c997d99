"""One door for data: a known name, or a file, read by the ending of its name."""

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple
from warnings import warn

import pandas as pd

from comes.datasets.annotation_tools import label_studio_dataset, read_prodigy, write_prodigy
from comes.datasets.answers import check_answers
from comes.datasets.archive import read_npz, read_npz_features, write_npz
from comes.datasets.arff import read_arff
from comes.datasets.coco import Unannotated, coco_dataset, load_json
from comes.datasets.dataset import Dataset, check_features, join_features, join_images
from comes.datasets.download import cache_folder
from comes.datasets.images import Images
from comes.datasets.known import KNOWN, find_known, load_dataset
from comes.datasets.openml import read_openml
from comes.datasets.pml import read_pml_mat, write_pml_mat
from comes.datasets.svmlight import read_svmlight
from comes.datasets.tables import (
    LabelColumns,
    TableForm,
    read_table_dataset,
    read_table_features,
    select_features,
    write_table_dataset,
)
from comes.errors import ComesError, ComesWarning


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
    if isinstance(content, list):
        if unannotated is not None:
            raise ComesError(f"{path.name} is no COCO file: 'unannotated' says nothing about it.")
        return label_studio_dataset(content, path, **options)
    if set(options) - {"label_names", "complementary"}:
        raise ComesError(f"{path.name} is a COCO file, and says itself what its labels are.")
    dataset = coco_dataset(content, path, unannotated or "drop")
    return _meaning(dataset, path, complementary=options.get("complementary", False))


TABLE = Format(read_table_dataset, TABLE_OPTIONS)
SVMLIGHT = Format(read_svmlight, ("label_names",))
JSON_OPTIONS = ("labels", "item", "complementary", "label_names", "unannotated")
FORMATS = {
    ".csv": TABLE,
    ".parquet": TABLE,
    ".npz": Format(read_npz),
    ".mat": Format(read_pml_mat),
    ".arff": Format(read_arff, ("labels", "relevant", "ignore", "xml")),
    ".svm": SVMLIGHT,
    ".libsvm": SVMLIGHT,
    ".txt": SVMLIGHT,
    ".json": Format(_read_json, JSON_OPTIONS),
    ".jsonl": Format(read_prodigy, ("item", "complementary", "label_names")),
}
WRITERS: Mapping[str, Callable[[Dataset, Path], None]] = {
    ".npz": write_npz,
    ".mat": write_pml_mat,
    ".jsonl": write_prodigy,
}
# What a written file holds of a data set; npz and wide tables hold everything.
HOLDS = {
    "names": {"features", "candidates", "relevant", "items"},
    "long": {"candidates", "asked", "items"},
    ".mat": {"features", "candidates", "relevant"},
    ".jsonl": {"candidates", "asked", "items"},
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
    }
    given = {name: value for name, value in given.items() if value}
    ours = {"complementary", "label_names", "feature_columns"}  # done here for the other formats
    foreign = [name for name in given if name not in reader.options and name not in ours]
    if foreign:
        raise ComesError(
            f"{foreign[0].replace('_', '-')!r} says nothing about a {path.suffix} file: "
            f"{path.name} says itself what its labels are."
        )
    options = {name: value for name, value in given.items() if name in reader.options}
    if reader is TABLE and (features is not None or images is not None):
        options["without_features"] = True
    dataset = reader.read(path, **options)
    if "complementary" not in reader.options or candidates:
        dataset = _meaning(dataset, path, candidates, complementary)
    if feature_columns and isinstance(dataset.X, pd.DataFrame):
        dataset = replace(dataset, X=select_features(dataset.X, feature_columns))
    if label_names is not None and dataset.label_names != list(label_names):
        dataset = dataset.with_labels(label_names)
    if images is not None:
        return join_images(dataset, images, skip_broken)
    if features is not None:
        return join_features(dataset, *_read_features(_existing(features), None))
    if skip_broken:
        raise ComesError("broken images can be skipped where there are images (--images).")
    return dataset


def read_features(path: str | Path, columns: Sequence[str] | None = None) -> Any:
    """Read features alone, for prediction; of a table, the named columns."""
    X, _ = _read_features(_existing(path), columns)
    check_features(X)
    return X


def open_dataset(which: str | Path, **options: Any) -> Dataset:
    """Read a file, a known data set by its name, or one of OpenML.

    Parameters
    ----------
    which : str or Path
        "photos.csv", "YeastBP", "scene:train", "openml:emotions", "openml:41465". A file of that
        name comes first.
    **options
        Those of `read_dataset` or, for names, of `load_dataset`; None and empty ones count as not
        given.

    Returns
    -------
    dataset : Dataset
    """
    options = {name: value for name, value in options.items() if value}
    name, _, split = str(which).partition(":")
    if Path(which).expanduser().exists():
        return read_dataset(which, **options)
    complementary = {key: options.pop(key, False) for key in ("candidates", "complementary")}
    label_names = options.pop("label_names", None)
    options.pop("feature_columns", None)
    if name.lower() == "openml" and split:
        if options:
            raise ComesError(f"{next(iter(options))!r} says nothing about a data set of OpenML.")
        dataset = read_openml(split, cache_folder() / "openml")
    elif find_known(name) is not None:
        dataset = load_dataset(name, split, **options)
    else:
        raise _nothing_called(Path(which))
    dataset = _meaning(dataset, Path(which), **complementary)
    return dataset if label_names is None else dataset.with_labels(label_names)


def write_dataset(dataset: Dataset, path: str | Path, form: TableForm = "wide") -> None:
    """Write a data set in the format that the ending of the name says.

    Parameters
    ----------
    dataset : Dataset
    path : str or Path
        .npz, .csv, .parquet, .mat or .jsonl. What the format cannot hold is named in a warning.
    form : {"wide", "names", "long"}
        The form of the labels in a .csv or .parquet file.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> path = Path(tempfile.mkdtemp()) / "two.csv"
    >>> write_dataset(Dataset(np.eye(2), ["sky"], np.array([[True], [False]])), path)
    >>> print(path.read_text().strip())
    candidate:sky,x0,x1
    1,1.0,0.0
    0,0.0,1.0
    """
    path = Path(path)
    ending = check_writable(path, form)
    held = HOLDS.get(form if ending in (".csv", ".parquet") else ending)
    if held is not None:
        parts = {
            "features": not isinstance(dataset.X, Images) and dataset.X is not None,
            "candidates": dataset.candidates is not None,
            "relevant": dataset.relevant is not None,
            "asked": dataset.asked is not None,
            "items": dataset.items is not None,
        }
        lost = [name for name, there in parts.items() if there and name not in held]
        if lost:
            warn(
                f"{path.name} cannot hold {' and '.join(lost)}, which are left out.",
                ComesWarning,
                stacklevel=2,
            )
    if ending in WRITERS:
        WRITERS[ending](dataset, path)
    else:
        write_table_dataset(dataset, path, form)


def check_writable(path: Path, form: TableForm = "wide") -> str:
    """Return the ending of a name that a data set can be written to, else raise."""
    ending = path.suffix.lower()
    if ending not in (".csv", ".parquet", *WRITERS):
        raise ComesError(
            f"{path.name} should end in .csv, .parquet, {' or '.join(WRITERS)}; got "
            f"{ending or 'no ending'}."
        )
    if form not in ("wide", "names", "long") or (form != "wide" and ending in WRITERS):
        raise ComesError(
            f"the form {form!r} is none of a {ending} file; wide, names and long are forms of .csv "
            "and .parquet files."
        )
    return ending


def _meaning(
    dataset: Dataset, path: Path, candidates: bool = False, complementary: bool = False
) -> Dataset:
    """Return the data set with its one kind of labels read as what the user says they are."""
    if not candidates and not complementary:
        return dataset
    if candidates and complementary:
        raise ComesError("labels are either candidates or complementary; got both.")
    if dataset.candidates is not None:
        if complementary and dataset.from_complementary:
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


def _read_features(path: Path, columns: Sequence[str] | None) -> tuple[Any, list[str] | None]:
    if _format(path) is TABLE:
        return read_table_features(path, columns)
    if path.suffix.lower() == ".npz":
        return read_npz_features(path)
    dataset = _format(path).read(path)
    return dataset.known_features(), dataset.items


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
    path = Path(path).expanduser()
    if path.is_dir():
        raise ComesError(
            f"{path} is a folder; a file was wanted. Of a folder of images, the file is the one "
            "with their labels."
        )
    if not path.is_file():
        raise _nothing_called(path)
    if path.stat().st_size == 0:
        raise ComesError(f"{path} is empty; a data set with at least one row was wanted.")
    return path


def _nothing_called(path: Path) -> ComesError:
    names = [p.name for p in path.parent.iterdir()] if path.parent.is_dir() else []
    near = difflib.get_close_matches(path.name, names, n=1)
    known = difflib.get_close_matches(str(path), KNOWN, n=1)
    if near:
        hint = f"Did you mean {path.parent / near[0]}?"
    elif known:
        hint = f"Did you mean the data set {known[0]}?"
    else:
        hint = "Check the path; 'comes datasets' lists the data sets that have a name."
    return ComesError(f"{path} does not exist. {hint}")
