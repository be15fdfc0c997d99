"""Jobs on data sets: list those with a name, describe one, convert it, make candidates."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from comes.answers import Answers, State
from comes.datasets import (
    KNOWN,
    Dataset,
    Images,
    ReadOptions,
    check_dataset,
    open_dataset,
    write_dataset,
)
from comes.datasets.checks import Finding
from comes.datasets.formats import check_writable
from comes.datasets.table_datasets import TableForm
from comes.files import check_file_target, refuse_inputs
from comes.generation import Case, generate
from comes.jobs.project_data import is_project, read_project
from comes.jobs.table_columns import list_columns


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
