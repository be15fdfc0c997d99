"""The formats of files: how a data set is read from each, and written."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from comes.datasets.dataset import Dataset, is_table
from comes.datasets.images import Images
from comes.datasets.matrices import (
    read_arff,
    read_libsvm,
    read_mat,
    read_npz,
    read_npz_features,
    write_mat,
    write_npz,
)
from comes.datasets.options import NAMES, ReadOptions
from comes.datasets.table import TABLE_ENDINGS, check_ending
from comes.datasets.table_datasets import (
    TableForm,
    read_table_dataset,
    read_table_features,
    write_table_dataset,
)
from comes.datasets.tools import read_json, read_prodigy, write_prodigy
from comes.errors import ComesError, warn_user

# Parts of a data set that a file may lose, as a warning calls them.
PARTS = (
    "features",
    "feature names",
    "candidates",
    "relevant",
    "who was asked",
    "items",
    "that the labels were complementary",
    "that the answers were complementary labels",
    "that the labels were ticked",
    "who said what",
    "which questions a model chose",
)
COMPLEMENTARY_ANSWERS, TICKED, PEOPLE, CHOSEN = PARTS[-4:]
IN_TABLES = tuple(p for p in PARTS if p not in (COMPLEMENTARY_ANSWERS, PEOPLE, CHOSEN))
IN_LONG = ("candidates", "who was asked", "items", PEOPLE, CHOSEN)
IN_MAT = ("features", "candidates", "relevant", "who was asked", TICKED, CHOSEN)


@dataclass(frozen=True)
class Format:
    """How files of an ending are read and written.

    ``fields`` are those of `ReadOptions` that the reader applies; those of `SHARED_FIELDS` may be
    given for every file, and are applied after reading if the reader does not. ``read_features``
    returns features and the names of items, by default those of the data set. ``writers`` has, by
    the form of the labels, what writes them and which parts of a data set the file then holds.
    ``about`` and ``labels`` describe the file and its labels for the page of formats.
    """

    read: Callable[[Path, ReadOptions], Dataset]
    fields: tuple[str, ...] = ()
    read_features: Callable[[Path, ReadOptions], tuple[Any, list[str] | None]] | None = None
    writers: Mapping[str, tuple[Callable[[Dataset, Path], None], tuple[str, ...]]] = field(
        default_factory=dict
    )
    about: str = ""
    labels: str = ""


# Fields that may be given for every file; only LIBSVM uses n_features.
SHARED_FIELDS = (
    "labels_are",
    "label_names",
    "features",
    "images",
    "skip_broken",
    "feature_columns",
    "n_features",
)
TABLE_FIELDS = (*NAMES, "item", "words", "labels_are", "separator")
TABLE = Format(
    read_table_dataset,
    TABLE_FIELDS,
    read_table_features,
    {
        "wide": (write_table_dataset, IN_TABLES),
        "names": (partial(write_table_dataset, form="names"), IN_TABLES),
        "long": (partial(write_table_dataset, form="long"), IN_LONG),
    },
    "a table, with its labels in one of three forms",
    "what the columns say",
)
LIBSVM = Format(
    read_libsvm,
    ("label_names", "n_features"),
    about="LIBSVM multi-label, `1,3 5:0.2`, features counted from 1; or from 0 after a first line "
    "`n d q`, as in the extreme classification repository",
    labels="the truth",
)
FORMATS: Mapping[str, Format] = {
    **dict.fromkeys(TABLE_ENDINGS, TABLE),
    ".npz": Format(
        read_npz,
        (),
        read_npz_features,
        {"wide": (write_npz, PARTS)},
        "`X` (or `X_data`, `X_indices`, `X_indptr`, `X_shape`); one of `candidates`, "
        "`complementary`, `positives`, or `no`, `yes` and `maybe`; `relevant`, `label_names`, "
        "`feature_names`, `items`",
        "what the arrays are called",
    ),
    ".mat": Format(
        read_mat,
        writers={"wide": (write_mat, IN_MAT)},
        about="partial multi-label learning: `data`, `target`, `partial_labels` (or "
        "`candidate_labels`, `partial_target`; or ours, as in .npz), as (q, n) or (n, q), 0/1 or "
        "-1/1, dense or sparse, also version 7.3",
        labels="candidates and the truth",
    ),
    ".arff": Format(
        read_arff,
        ("labels", "relevant", "ignore", "labels_are", "xml"),
        about="Mulan (labels named in the `.xml` beside it) and MEKA (`-C` in the relation), dense "
        "or sparse rows",
        labels="the truth",
    ),
    ".svm": LIBSVM,
    ".libsvm": LIBSVM,
    ".txt": LIBSVM,
    ".json": Format(
        read_json,
        ("labels", "item", "words", "labels_are", "label_names", "unannotated"),
        about="COCO, or an export of Label Studio (JSON, not JSON_MIN)",
        labels="COCO: the truth; LVIS and Label Studio: answers",
    ),
    ".jsonl": Format(
        read_prodigy,
        ("item", "words", "labels_are", "label_names"),
        writers={"wide": (write_prodigy, IN_LONG)},
        about="an export of Prodigy",
        labels="answers",
    ),
}


def find_format(path: Path) -> Format:
    """Return the format that the ending of a name says; raise if there is none."""
    return FORMATS[check_ending(path, FORMATS)]


def write_dataset(dataset: Dataset, path: str | Path, form: TableForm = "wide") -> None:
    """Write a data set in the format that the ending of the name says.

    Parameters
    ----------
    dataset : Dataset
    path : str or Path
        What the format cannot hold is named in a warning; .npz holds everything.
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
    check_writable(path, form)
    known = find_format(path)
    write, held = known.writers[form]
    lost = [part for part in _list_parts(dataset) if part not in held]
    if lost:
        warn_user(f"{path.name} cannot hold {' and '.join(lost)}; left out.")
    if known is not TABLE and is_table(dataset.X):
        raise ComesError(
            f"{path.name} can hold complete numbers, and the features have missing values, words, "
            "dates or an id. Write .csv or .parquet."
        )
    write(dataset, path)


def check_writable(path: str | Path, form: TableForm = "wide") -> None:
    """Raise unless a data set can be written to a file of that name, in that form."""
    ending = check_ending(path, [name for name, known in FORMATS.items() if known.writers])
    forms = FORMATS[ending].writers
    if form not in forms:
        raise ComesError(
            f"{ending} files do not have the form {form!r}; expected {' or '.join(forms)}."
        )


def _list_parts(dataset: Dataset) -> list[str]:
    """Return the parts that a data set has, of those that a file may lose."""
    answers = dataset.answers
    is_answered = answers is not None and answers.kind == "answers"
    has = (  # in the order of PARTS
        not isinstance(dataset.X, Images) and dataset.X is not None,
        isinstance(dataset.X, pd.DataFrame),
        answers is not None,
        dataset.relevant is not None,
        is_answered,
        dataset.items is not None,
        dataset.from_complementary and not is_answered,
        dataset.from_complementary and is_answered,
        answers is not None and answers.kind == "positives",
        answers is not None and answers.annotations is not None,
        answers is not None and answers.chosen is not None,
    )
    return [part for part, is_there in zip(PARTS, has, strict=True) if is_there]
