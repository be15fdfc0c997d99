"""Data sets as commands take them: read, described, written in another format, simulated."""

import fnmatch
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pandas as pd

from comes.answers import Answers, State
from comes.datasets import (
    KNOWN,
    Dataset,
    Images,
    ReadOptions,
    join_features,
    open_dataset,
    read_features,
    read_images,
    write_dataset,
)
from comes.datasets.checks import Finding
from comes.datasets.formats import check_writable
from comes.datasets.predictions import check_feature_target, write_features
from comes.datasets.table_datasets import TableForm
from comes.errors import ComesError
from comes.files import check_file_target, expanded, refuse_inputs
from comes.generation import Case, generate, simulate_answers
from comes.progress import progress_bar
from comes.tables import Column, describe_columns
from comes.tables.columns import find_item_column, needs_encoding

if TYPE_CHECKING:
    from comes.tables import ColumnEncoder

DESCRIPTION = "project.json"
FIELDS = ("features", "feature_columns", "n_features", "text")  # a project may be read with these
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
STRENGTHS = ("doubt_strength", "asked_strength")
SETTINGS_OF_ANSWERS = ("asked_rate", "no_rate", "yes_rate", "mistake_rate", *STRENGTHS)


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
    from comes.annotate import collect_answers, open_project

    project = open_project(folder)
    try:
        dataset = collect_answers(project)
    finally:
        project.engine.dispose()
    if reading.features is None:
        return dataset
    found = read_features(reading.features, reading.feature_columns, reading.n_features)
    return join_features(dataset, *found)


def open_if_project(data: Dataset | str | Path) -> Dataset | str | Path:
    """Return the data of a project, and anything else as it is."""
    if isinstance(data, Dataset) or not is_project(data):
        return data
    return read_project(data)


def as_dataset(data: Dataset | str | Path, reading: ReadOptions | None) -> Dataset:
    """Return a data set as it is, or read it; the folder of an annotation project is data, too."""
    if isinstance(data, Dataset):
        return data
    return read_project(data, reading) if is_project(data) else open_dataset(data, reading)


def with_text_column(
    data: Dataset | str | Path, dataset: Dataset, reading: ReadOptions | None
) -> ReadOptions | None:
    """Return the reading, which for a project of texts says that they are texts."""
    is_said = isinstance(data, Dataset) or not is_project(data) or (reading and reading.given)
    is_table = isinstance(dataset.X, pd.DataFrame)
    return ReadOptions(text=["text"]) if is_table and not is_said else reading


def reading_files(reading: ReadOptions | None) -> tuple[str | Path | None, ...]:
    """Return what is read beside the data."""
    return () if reading is None else (reading.features, reading.images, reading.xml)


def make_encoder(
    dataset: Dataset, reading: ReadOptions | None, embedding: str | None = None
) -> "ColumnEncoder | None":
    """Return an encoder that takes columns for what the reading says; None if nothing is said.

    Texts become vectors of the embedding, if one is named.
    """
    from comes.tables import ColumnEncoder  # imports scikit-learn; most commands need none

    X, kinds = dataset.X, _name_kinds(dataset, reading)
    if embedding is None:
        return ColumnEncoder(kinds) if kinds else None
    columns = describe_columns(X, kinds or None) if isinstance(X, pd.DataFrame) else ()
    if not any(column.kind == "text" for column in columns):
        raise ComesError(
            f"the embedding {embedding!r} is for texts, and no column is taken for a text. Name "
            "it (--text), or leave the embedding out (--embedding)."
        )
    return ColumnEncoder(kinds or None, text=embedding)


def _name_kinds(dataset: Dataset, reading: ReadOptions | None) -> dict[str, str]:
    """Return what the reading says that columns of a table are."""
    asked = {kind: getattr(reading, kind, None) or () for kind in PLURALS}
    if not any(asked.values()):
        return {}
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
            for name in found or [pattern]:  # one that is not there is refused by the encoder
                if (first := kinds.setdefault(name, kind)) != kind:
                    raise ComesError(
                        f"column {name!r} is named as a {first} and as a {kind}. Leave one out "
                        f"(--{first}, --{kind})."
                    )
    return kinds


def list_columns(dataset: Dataset, reading: ReadOptions | None = None) -> list[dict[str, Any]]:
    """Return a row per column of a table: what it is taken for, why, and what becomes of it.

    Features come first. Columns of complete numbers are features as they are.
    """
    from comes.tables import ColumnEncoder

    reading = reading or ReadOptions()
    encoder, X = make_encoder(dataset, reading), dataset.X
    if not isinstance(X, pd.DataFrame):
        return []
    if encoder is None and not needs_encoding(X):
        columns = [Column(str(name), "number", "numbers", n_features=1) for name in X.columns]
    else:
        columns = list((encoder or ColumnEncoder()).fit(X).columns_)
    item = None if dataset.items is None else find_item_column(X)
    rows = []
    for c in columns:
        becomes = "left out; it names the items" if c.name == item else c.becomes
        rows.append((c.name, c.kind, c.why, c.n_missing, becomes, c.n_features or 0))
    asked = {"label": reading.labels, "truth": reading.relevant, "ignored": True}
    for name, (role, n_missing) in dataset.roles.items():
        is_asked = asked.get(role) is not None or name == reading.item
        why = "asked for" if is_asked else "its name says so"
        rows.append((name, role, why, n_missing, ROLES[role], 0))
    titles = ("column", "taken_for", "why", "missing", "becomes", "features")
    return [dict(zip(titles, row, strict=True)) for row in rows]


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
    """Return a row for every data set, and every split of one, that has a name."""
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


def summarise_dataset(
    dataset: Dataset, findings: Sequence[Finding] = (), reading: ReadOptions | None = None
) -> dict[str, Any]:
    """Return what a data set holds for json: counts, columns, labels, and findings by name."""
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
    simulate: Case | Literal["answers"] | None = None,
    seed: int = 0,
    **rates: Any,
) -> Dataset:
    """Write a data set in another format, with simulated labels if wanted, and return it.

    Parameters
    ----------
    data : Dataset, path or name
    output : path
        The ending says the format: .npz, .csv, .parquet, .mat, .jsonl and others.
    reading : ReadOptions, optional
        What the columns of a file mean.
    form : {"wide", "names", "long"}
        The form of the labels in a table.
    simulate : {"a", "b", "independent", "one", "size", "instance", "answers"}, optional
        Draw candidates or answers from the true labels by this process.
    seed : int
    **rates
        Of the process: ``rate`` and ``strength`` of candidates; for answers those of
        `comes.generation.simulate_answers`, such as ``asked_rate``.

    Returns
    -------
    dataset : Dataset

    Examples
    --------
    >>> import tempfile
    >>> from comes.datasets import make_scenes
    >>> path = Path(tempfile.mkdtemp()) / "scenes.npz"
    >>> print(convert_dataset(make_scenes(n=50), path))
    50 rows, 256 features, 10 labels, 2.20 relevant per row, 0 rows without a relevant label
    >>> made = convert_dataset(path, path.with_name("made.csv"), simulate="b", rate=0.5)
    >>> round(float((~made.candidates).sum() / (~made.relevant).sum()), 1)
    0.5
    """
    check_writable(Path(output), form)
    check_file_target(output)
    refuse_inputs(output, data, *reading_files(reading))
    with progress_bar(3, "convert", unit="step") as advance:
        dataset = as_dataset(data, reading)
        advance()
        if simulate is not None:
            dataset = simulate_labels(dataset, simulate, seed=seed, **rates)
        advance()
        write_dataset(dataset, output, form)
        advance()
    return dataset


def simulate_labels(
    dataset: Dataset, case: Case | Literal["answers"] = "b", *, seed: int = 0, **rates: Any
) -> Dataset:
    """Return a data set whose candidates or answers are drawn from its true labels."""
    for name, value in rates.items():
        if name not in (SETTINGS_OF_ANSWERS if case == "answers" else ("rate", "strength")):
            raise ComesError(f"case {case} has no {name}; got {value}. Leave it out.")
        if isinstance(value, list) and name not in ("rate", "asked_rate", "no_rate", "yes_rate"):
            raise ComesError(f"{name} must be one number; got {value}.")
    relevant = dataset.known_relevant()
    if case == "answers":
        needs_features = any(rates.get(name) for name in STRENGTHS)
        X = dataset.known_features() if needs_features else None
        answers = simulate_answers(relevant, X, seed=seed, **rates)
        if answers.asked is not None and not answers.asked.any():
            raise ComesError("nothing was asked, so nothing can be learnt. Raise asked_rate.")
    else:
        X = dataset.known_features() if case == "instance" else None
        answers = Answers.from_candidates(generate(case, relevant, X, seed=seed, **rates))
    return replace(dataset, answers=answers, from_complementary=False)


def are_pictures(data: str | Path, reading: ReadOptions) -> bool:
    """Return whether data are pictures without labels: a folder, a .zip, or a table of names."""
    path = expanded(data)
    if os.path.isdir(path):
        return not is_project(path)
    has_labels = reading.labels is not None or reading.relevant is not None
    return path.suffix.lower() == ".zip" or (reading.images is not None and not has_labels)


def convert_pictures(
    data: str | Path,
    output: str | Path,
    reading: ReadOptions,
    *,
    backbone: str = "resnet50",
    weights: str | Path | None = "imagenet",
    image_size: int | None = None,
    device: str = "auto",
) -> dict[str, Any]:
    """Write the features of pictures by a frozen network; say how many there are.

    The cache holds them as they are computed: after a kill, the same call goes on.
    """
    check_feature_target(output)
    refuse_inputs(output, data, reading.images, weights)
    import torch

    from comes.images import compute_features, make_backbone
    from comes.training.rows import choose_device

    where = choose_device(device)
    pictures = read_images(data, reading.images, reading.skip_broken)
    network = make_backbone(backbone, weights, pictures, size=image_size, device=where)
    network.classifier = None  # the last layer, not the classes of the network
    precision = torch.bfloat16 if where.type == "cuda" else None
    X = compute_features(network, pictures, where, precision)
    write_features(X, pictures.names, output)
    return {"images": len(X), "features": X.shape[1], "file": str(output)}
