"""An annotation project as data: what was answered, with the texts or images that it is about."""

import fnmatch
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from comes.answers import Answers, State
from comes.datasets import (
    KNOWN,
    Dataset,
    Images,
    ReadOptions,
    check_dataset,
    join_features,
    open_dataset,
    read_features,
    write_dataset,
)
from comes.datasets.checks import Finding
from comes.datasets.formats import check_writable
from comes.datasets.table_datasets import TableForm
from comes.errors import ComesError
from comes.files import check_file_target, expanded, refuse_inputs
from comes.generation import Case, generate, simulate_answers
from comes.tables import Column, ColumnEncoder, describe_columns
from comes.tables.columns import find_item_column, needs_encoding

if TYPE_CHECKING:
    from comes.annotate import Project
DESCRIPTION = "project.json"
FIELDS = ("features", "feature_columns", "n_features", "text")  # of a reading that may be given


def is_project(data: str | Path) -> bool:
    """Return whether data are the folder of an annotation project."""
    return os.path.isfile(expanded(data) / DESCRIPTION)


def read_project(folder: str | Path, reading: ReadOptions | None = None) -> Dataset:
    """Return what was answered in a project; other features may be given for its items."""
    reading = reading or ReadOptions()
    foreign = [name for name in reading.given if name not in FIELDS]
    if foreign:
        raise ComesError(
            f"{folder} is an annotation project, which says itself what its items and labels are. "
            f"Leave {foreign[0]!r} out."
        )
    from comes.annotate import collect_answers, collect_data

    project = _open(folder)
    try:
        if reading.features is None:
            return collect_data(project)
        found = read_features(reading.features, reading.feature_columns, reading.n_features)
        return join_features(collect_answers(project), *found)
    finally:
        project.engine.dispose()


def open_if_project(data: Dataset | str | Path) -> Dataset | str | Path:
    """Return the data of a project, and anything else as it is."""
    if isinstance(data, Dataset) or not is_project(data):
        return data
    return read_project(data)


def with_text_column(data: Dataset | str | Path, reading: ReadOptions | None) -> ReadOptions | None:
    """Return the reading, which for a project of texts says that they are texts."""
    is_read = reading is not None and bool(reading.given)
    if is_read or isinstance(data, Dataset) or not is_project(data):
        return reading
    project = _open(data)
    project.engine.dispose()
    return ReadOptions(text=["text"]) if project.kind == "text" else reading


def _open(folder: str | Path) -> "Project":
    """Open a project; the packages that this needs are imported only here."""
    from comes.annotate import open_project

    return open_project(folder)


ROLES = {
    "label": "labels",
    "truth": "true labels; nothing is trained on them",
    "item": "the names of the items",
    "ignored": "left out",
}
PLURALS = {
    "number": "numbers",
    "category": "categories",
    "boolean": "booleans",
    "date": "dates",
    "text": "texts",
}


def make_encoder(
    dataset: Dataset, reading: ReadOptions | None, embedding: str | None = None
) -> ColumnEncoder | None:
    """Return an encoder that takes columns for what the reading says; None if nothing is said.

    Texts become vectors of the embedding, if one is named.
    """
    if embedding is not None:
        return _make_embedder(dataset, make_encoder(dataset, reading), embedding)
    asked = {kind: getattr(reading, kind, None) or () for kind in PLURALS}
    if not any(asked.values()):
        return None
    if not isinstance(dataset.X, pd.DataFrame):
        raise ComesError(
            "text, category, number and date (--text, --category, --number, --date) name columns "
            "of a table, and the features have no names. Leave them out."
        )
    names = [str(name) for name in dataset.X.columns]
    kinds: dict[str, str] = {}
    for kind, patterns in asked.items():
        for pattern in patterns:
            found = [pattern] if pattern in names else fnmatch.filter(names, pattern)
            twice = [name for name in found if kinds.get(name, kind) != kind]
            if twice:
                first = kinds[twice[0]]
                raise ComesError(
                    f"column {twice[0]!r} is named as a {first} and as a {kind}. Leave one out "
                    f"(--{first}, --{kind})."
                )
            kinds |= dict.fromkeys(found or [pattern], kind)  # one that is not there is refused
    return ColumnEncoder(kinds)


def _make_embedder(dataset: Dataset, given: ColumnEncoder | None, embedding: str) -> ColumnEncoder:
    """Return an encoder that embeds texts; raise if no column is one."""
    X, kinds = dataset.X, None if given is None else given.kinds
    columns = describe_columns(X, kinds) if isinstance(X, pd.DataFrame) else ()
    if not any(column.kind == "text" for column in columns):
        raise ComesError(
            f"the embedding {embedding!r} is for texts, and no column is taken for a text. Name "
            "it (--text), or leave the embedding out (--embedding)."
        )
    return ColumnEncoder(kinds, text=embedding)


def list_columns(dataset: Dataset, reading: ReadOptions | None = None) -> list[dict[str, Any]]:
    """Return a row per column of a table: what it is taken for, why, and what becomes of it.

    Columns of complete numbers, an id among them aside, are features as they are. Those that are no
    features come last.
    """
    rows = _list_features(dataset, reading)
    asked = {} if reading is None else {"label": reading.labels, "truth": reading.relevant}
    for name, (role, n_missing) in dataset.roles.items() if rows else ():
        why = "its name says so" if role == "item" or asked.get(role) is None else "asked for"
        if role == "ignored" or (reading is not None and name == reading.item):
            why = "asked for"
        column = Column(name, "ignored", why, n_missing)
        rows.append(_describe(column, taken_for=role, becomes=ROLES[role]))
    return rows


def _list_features(dataset: Dataset, reading: ReadOptions | None) -> list[dict[str, Any]]:
    """Return a row per feature column of a table."""
    encoder, X = make_encoder(dataset, reading), dataset.X
    if not isinstance(X, pd.DataFrame):
        return []
    if encoder is None and not needs_encoding(X):
        columns = [Column(str(name), "number", "numbers", n_features=1) for name in X.columns]
    else:
        columns = list((encoder or ColumnEncoder()).fit(X).columns_)
    rows = [_describe(column) for column in columns]
    item = None if dataset.items is None else find_item_column(X)
    return [
        row | {"becomes": "left out; it names the items"} if row["column"] == item else row
        for row in rows
    ]


def _describe(column: Column, **changes: str) -> dict[str, Any]:
    """Return a column as a row of a table."""
    row = {
        "column": column.name,
        "taken_for": column.kind,
        "why": column.why,
        "missing": column.n_missing,
        "becomes": column.becomes,
        "features": column.n_features or 0,
    }
    return row | changes


def name_item_column(dataset: Dataset, reading: ReadOptions | None) -> str | None:
    """Return the column that names the items, if it is not called "item"."""
    if reading is not None and reading.item is not None:
        return reading.item
    return find_item_column(dataset.X) if isinstance(dataset.X, pd.DataFrame) else None


def summarise_columns(columns: tuple[Column, ...]) -> dict[str, str]:
    """Return in a line each which columns of a table are used, and which are left out."""
    if not columns:
        return {}
    counts = Counter(column.kind for column in columns if column.is_used)
    said = ", ".join(f"{n} {PLURALS[kind] if n > 1 else kind}" for kind, n in counts.items())
    used = {"columns": f"{said}: {sum(column.n_features or 0 for column in columns)} features"}
    out = [f"{column.name!r} ({column.why})" for column in columns if not column.is_used]
    more = "" if len(out) <= 5 else f" and {len(out) - 5} more"
    return used | ({"left_out": ", ".join(out[:5]) + more} if out else {})


def list_datasets() -> list[dict[str, Any]]:
    """Return a row for every data set, and every split of one, that has a name.

    Returns
    -------
    rows : list of dict
        name, rows (None where published copies differ), features (None for images), labels,
        at_hand, download, about.

    Examples
    --------
    >>> {row["name"]: row["labels"] for row in list_datasets()}["YeastBP"]
    217
    """
    return [
        {
            "name": f"{known.name}:{split}" if split else known.name,
            "rows": n,
            "features": known.n_features,
            "labels": known.n_labels,
            "at_hand": known.is_at_hand(split),
            "download": known.can_be_downloaded(split),
            "about": known.about,
        }
        for known in KNOWN.values()
        for split, n in known.rows.items()
    ]


def describe_dataset(
    data: Dataset | str | Path, reading: ReadOptions | None = None
) -> tuple[Dataset, list[Finding]]:
    """Return a data set, and findings that deserve a look before training.

    Parameters
    ----------
    data : Dataset, path or name
    reading : ReadOptions, optional
        What the columns of a file mean.

    Examples
    --------
    >>> from comes.datasets import make_scenes
    >>> dataset, findings = describe_dataset(make_scenes(n=50))
    >>> findings[0].name
    'constant_features'
    """
    dataset = as_dataset(data, reading)
    return dataset, check_dataset(dataset)


def summarise_dataset(
    dataset: Dataset,
    findings: Sequence[Finding] = (),
    reading: ReadOptions | None = None,
) -> dict[str, Any]:
    """Return what a data set holds: counts, the names of features and labels, and findings.

    Parameters
    ----------
    dataset : Dataset
    findings : sequence of Finding
        As `describe_dataset` returns them.
    reading : ReadOptions, optional
        What the columns of a file mean.

    Returns
    -------
    summary : dict
        ``data``: rows, features (None without them, and for images), feature_names (None where
        they have none), labels, labels_are ("answers", "candidates", "complementary", "positives"
        or None), people (how many, or None), chosen (how many pairs a model chose, or None), and
        how many pairs there are and of which kind. ``columns``: what every column of a
        table is taken for, why, and what becomes of it. ``labels``: the same counts, by label.
        ``findings``: numbers by name.

    Examples
    --------
    >>> from comes.datasets import make_scenes
    >>> summary = summarise_dataset(make_scenes(n=50))
    >>> summary["data"]["labels_are"], summary["labels"][0]
    (None, {'label': '0', 'relevant': 10})
    """
    answers, X = dataset.answers, None if isinstance(dataset.X, Images) else dataset.X
    counts = count_labels(dataset)
    labels_are = None if answers is None else answers.kind
    said = None if answers is None else answers.annotations
    chosen = None if answers is None else answers.chosen
    return {
        "data": {
            "rows": len(dataset),
            "features": None if X is None else int(X.shape[1]),
            "feature_names": list(map(str, X.columns)) if isinstance(X, pd.DataFrame) else None,
            "images": isinstance(dataset.X, Images),
            "labels": len(dataset.label_names),
            "labels_are": "complementary" if dataset.from_complementary else labels_are,
            "people": None if said is None else len(said.people),
            "chosen": None if chosen is None else int(chosen.sum()),
            "pairs": len(dataset) * len(dataset.label_names),
            **{name: int(counts[name].sum()) for name in counts.columns if name != "label"},
        },
        "columns": list_columns(dataset, reading),
        "labels": counts.to_dict("records"),
        "findings": {found.name: found.number for found in findings},
    }


def count_labels(dataset: Dataset) -> pd.DataFrame:
    """Return in how many rows each label is relevant, ticked, excluded, or what was said."""
    counts, answers = pd.DataFrame({"label": dataset.label_names}), dataset.answers
    if answers is not None and answers.kind == "answers":
        counts = answers.count()
    elif answers is not None and answers.kind == "candidates":
        counts["excluded"] = answers.count_state(State.NO)
    elif answers is not None:
        counts["ticked"] = answers.count_state(State.YES)
    if dataset.relevant is not None:
        counts["relevant"] = dataset.relevant.sum(axis=0)
    return counts


def convert_dataset(
    data: Dataset | str | Path,
    output: str | Path,
    *,
    reading: ReadOptions | None = None,
    form: TableForm = "wide",
) -> Dataset:
    """Write a data set in another format, named by the ending, and return it.

    Parameters
    ----------
    data : Dataset, path or name
    output : path
        .npz, .csv, .parquet, .mat or .jsonl.
    reading : ReadOptions, optional
        What the columns of a file mean.
    form : {"wide", "names", "long"}
        The form of the labels in a .csv or .parquet file.

    Examples
    --------
    >>> import tempfile
    >>> from comes.datasets import make_scenes
    >>> print(convert_dataset(make_scenes(n=50), Path(tempfile.mkdtemp()) / "scenes.npz"))
    50 rows, 256 features, 10 labels, 2.20 relevant per row, 0 rows without a relevant label
    """
    check_output(output, form, data, reading)
    dataset = as_dataset(data, reading)
    write_dataset(dataset, output, form)
    return dataset


def generate_candidates(
    data: Dataset | str | Path,
    output: str | Path | None = None,
    *,
    reading: ReadOptions | None = None,
    case: Case = "b",
    rate: float | Sequence[float] | None = None,
    strength: float | None = None,
    form: TableForm = "wide",
    seed: int = 0,
) -> Dataset:
    """Return a data set whose candidates are drawn from its true labels; write it if asked.

    Parameters
    ----------
    data : Dataset, path or name
        Must have true labels.
    output : path, optional
        As in `convert_dataset`.
    reading : ReadOptions, optional
        What the columns of a file mean.
    case, rate, strength, seed
        The random process: a, b, independent, one, size or instance.
    form : {"wide", "names", "long"}

    Examples
    --------
    >>> from comes.datasets import make_scenes
    >>> made = generate_candidates(make_scenes(n=500), case="b", rate=0.5)
    >>> round(float((~made.candidates).sum() / (~made.relevant).sum()), 1)
    0.5
    """
    if output is not None:
        check_output(output, form, data, reading)
    dataset = as_dataset(data, reading)
    X = dataset.known_features() if case == "instance" else None
    relevant = dataset.known_relevant()
    candidates = generate(case, relevant, X, rate=rate, strength=strength, seed=seed)
    answers = Answers.from_candidates(candidates)
    made = replace(dataset, answers=answers, from_complementary=False)
    if output is not None:
        write_dataset(made, output, form)
    return made


def as_dataset(data: Dataset | str | Path, reading: ReadOptions | None) -> Dataset:
    """Return a data set as it is, or read it; the folder of an annotation project is data, too."""
    if isinstance(data, Dataset):
        return data
    return read_project(data, reading) if is_project(data) else open_dataset(data, reading)


def check_output(
    output: str | Path, form: TableForm, data: Dataset | str | Path, reading: ReadOptions | None
) -> None:
    """Raise unless a data set could be written there, and no file that is read is there."""
    check_writable(Path(output), form)
    check_file_target(output)
    refuse_inputs(output, data, *reading_files(reading))


def reading_files(reading: ReadOptions | None) -> tuple[str | Path | None, ...]:
    """Return what is read beside the data."""
    return () if reading is None else (reading.features, reading.images, reading.xml)


def generate_answers(
    data: Dataset | str | Path,
    output: str | Path | None = None,
    *,
    reading: ReadOptions | None = None,
    asked_rate: float | Sequence[float] = 0.1,
    no_rate: float | Sequence[float] = 0.8,
    yes_rate: float | Sequence[float] = 0.8,
    mistake_rate: float = 0.0,
    doubt_strength: float = 0.0,
    asked_strength: float = 0.0,
    form: TableForm = "wide",
    seed: int = 0,
) -> Dataset:
    """Return a data set whose answers are drawn from its true labels; write it if asked.

    Parameters
    ----------
    data : Dataset, path or name
        Must have true labels.
    output : path, optional
        As in `convert_dataset`.
    reading : ReadOptions, optional
        What the columns of a file mean.
    asked_rate, no_rate, yes_rate, mistake_rate, doubt_strength, asked_strength, seed
        The random process: as in `comes.generation.simulate_answers`.
    form : {"wide", "names", "long"}

    Examples
    --------
    >>> from comes.datasets import make_scenes
    >>> generate_answers(make_scenes(n=500), yes_rate=0).answers
    Answers about 500 rows and 10 labels: 487 of 5000 pairs asked, 298 no, 0 yes, 189 maybe
    """
    if output is not None:
        check_output(output, form, data, reading)
    dataset = as_dataset(data, reading)
    X = dataset.known_features() if doubt_strength or asked_strength else None
    answers = simulate_answers(
        dataset.known_relevant(),
        X,
        asked_rate=asked_rate,
        no_rate=no_rate,
        yes_rate=yes_rate,
        mistake_rate=mistake_rate,
        doubt_strength=doubt_strength,
        asked_strength=asked_strength,
        seed=seed,
    )
    if answers.asked is not None and not answers.asked.any():
        raise ComesError(
            f"nothing was asked at asked_rate (--asked-rate) {asked_rate}, so there is nothing to "
            "learn from. Give a larger rate."
        )
    made = replace(dataset, answers=answers, from_complementary=False)
    if output is not None:
        write_dataset(made, output, form)
    return made
