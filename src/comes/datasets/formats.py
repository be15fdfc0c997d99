"""The formats of files: one table from the ending of a name to what reads and writes it.

A new format is a module with its reader, and an entry in `FORMATS`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from comes.datasets.annotation_tools import label_studio_dataset, read_prodigy, write_prodigy
from comes.datasets.archive import read_npz, read_npz_features, write_npz
from comes.datasets.arff import read_arff
from comes.datasets.coco import coco_dataset, load_json
from comes.datasets.dataset import Dataset
from comes.datasets.pml import read_pml_mat, write_pml_mat
from comes.datasets.reading import Reading
from comes.datasets.svmlight import read_svmlight
from comes.datasets.table_datasets import (
    read_table_dataset,
    read_table_features,
    write_table_dataset,
)
from comes.datasets.tables import TABLE_ENDINGS, find_ending
from comes.errors import ComesError

# Parts of a data set that a file may lose, as a warning calls them.
FEATURES, FEATURE_NAMES, ITEMS = "features", "feature names", "items"
CANDIDATES, RELEVANT, ASKED = "candidates", "relevant", "who was asked"
COMPLEMENTARY = "that the labels were complementary"
COMPLEMENTARY_ANSWERS = "that the answers were complementary labels"
TICKED = "that the labels were ticked"
PEOPLE, CHOSEN = "who said what", "which questions a model chose"
PARTS = (
    FEATURES,
    FEATURE_NAMES,
    CANDIDATES,
    RELEVANT,
    ASKED,
    ITEMS,
    COMPLEMENTARY,
    COMPLEMENTARY_ANSWERS,
    TICKED,
    PEOPLE,
    CHOSEN,
)
IN_LONG = (CANDIDATES, ASKED, ITEMS, PEOPLE, CHOSEN)


@dataclass(frozen=True)
class Writer:
    """How a data set is written, and which parts of it the file holds."""

    write: Callable[[Dataset, Path], None]
    holds: tuple[str, ...] = PARTS


@dataclass(frozen=True)
class Format:
    """How files of an ending are read and written.

    Parameters
    ----------
    read : callable
        Returns the data set of a path and a `Reading`.
    fields : tuple of str
        The fields of a `Reading` that the reader applies. Those of `SHARED_FIELDS` may be given
        for every file; if the reader does not apply them, they are applied after reading.
    read_features : callable, optional
        Returns the features of a path and a `Reading`, and the names of the items; by default
        those of the data set.
    writers : mapping of str to Writer
        By the form of the labels. The default form, "wide", is the only one that a format has if
        it is not a table.
    about : str
        What is read, in Markdown, for the page of formats.
    labels : str
        What its labels are, unless a `Reading` says otherwise.
    """

    read: Callable[[Path, Reading], Dataset]
    fields: tuple[str, ...] = ()
    read_features: Callable[[Path, Reading], tuple[Any, list[str] | None]] | None = None
    writers: Mapping[str, Writer] = field(default_factory=dict)
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


def find_format(path: Path) -> Format:
    """Return the format that the ending of a name says; raise if there is none."""
    found = FORMATS.get(find_ending(path))
    if found is None:
        *endings, last = FORMATS
        raise ComesError(
            f"{path.name} should end in {', '.join(endings)} or {last}; got "
            f"{path.suffix or 'no ending'}."
        )
    return found


def _read_json(path: Path, reading: Reading) -> Dataset:
    """Read a COCO file, which is an object, or an export of Label Studio, a list of tasks."""
    content = load_json(path)
    if content == []:
        raise ComesError(f"{path.name} is an empty list; expected tasks of Label Studio.")
    if isinstance(content, list):
        if reading.unannotated is not None:
            raise ComesError(
                f"'unannotated' does not apply to {path.name}, which is not a COCO file. Leave it "
                "out."
            )
        return label_studio_dataset(content, path, reading)
    for name in ("labels", "item", "words"):
        if getattr(reading, name) is not None:
            raise ComesError(
                f"{path.name} is a COCO file, which names its labels and items. Leave out {name!r}."
            )
    dataset = coco_dataset(content, path, reading)
    if reading.unannotated is not None and dataset.answers is not None:
        raise ComesError(
            f"'unannotated' does not apply to {path.name}, whose labels are verified. Leave it out."
        )
    return dataset.with_labels_as(reading.labels_are, path.name)


TABLE = Format(
    read_table_dataset,
    (
        "labels",
        "relevant",
        "ignore",
        "text",
        "category",
        "feature_columns",
        "item",
        "long",
        "words",
        "labels_are",
        "label_names",
        "separator",
    ),
    read_table_features,
    {
        "wide": Writer(
            partial(write_table_dataset, form="wide"),
            tuple(p for p in PARTS if p not in (COMPLEMENTARY_ANSWERS, PEOPLE, CHOSEN)),
        ),
        "names": Writer(
            partial(write_table_dataset, form="names"),
            tuple(p for p in PARTS if p not in (COMPLEMENTARY_ANSWERS, PEOPLE, CHOSEN)),
        ),
        "long": Writer(partial(write_table_dataset, form="long"), IN_LONG),
    },
    "a table, with its labels in one of three forms",
    "what the columns say",
)
SVMLIGHT = Format(
    read_svmlight,
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
        {"wide": Writer(write_npz)},
        "`X` (or `X_data`, `X_indices`, `X_indptr`, `X_shape`); one of `candidates`, "
        "`complementary`, `positives`, or `no`, `yes` and `maybe`; `relevant`, `label_names`, "
        "`feature_names`, `items`",
        "what the arrays are called",
    ),
    ".mat": Format(
        read_pml_mat,
        writers={
            "wide": Writer(write_pml_mat, (FEATURES, CANDIDATES, RELEVANT, ASKED, TICKED, CHOSEN))
        },
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
    ".svm": SVMLIGHT,
    ".libsvm": SVMLIGHT,
    ".txt": SVMLIGHT,
    ".json": Format(
        _read_json,
        ("labels", "item", "words", "labels_are", "label_names", "unannotated"),
        about="COCO, or an export of Label Studio (JSON, not JSON_MIN)",
        labels="COCO: the truth; LVIS and Label Studio: answers",
    ),
    ".jsonl": Format(
        read_prodigy,
        ("item", "words", "labels_are", "label_names"),
        writers={"wide": Writer(write_prodigy, IN_LONG)},
        about="an export of Prodigy",
        labels="answers",
    ),
}
