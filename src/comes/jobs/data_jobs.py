"""Jobs on data sets: list those with a name, describe one, convert it, make candidates."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from comes.answers import Answers
from comes.datasets import (
    KNOWN,
    Dataset,
    Finding,
    Reading,
    TableForm,
    check_dataset,
    check_writable,
    open_dataset,
    write_dataset,
)
from comes.files import check_file_target
from comes.generation import Case, generate


def list_datasets() -> list[dict[str, Any]]:
    """Return a row for every data set, and every split of one, that has a name.

    Returns
    -------
    rows : list of dict
        name, rows, features (None for images), labels, at_hand, download, about.

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
    data: Dataset | str | Path, reading: Reading | None = None
) -> tuple[Dataset, list[Finding]]:
    """Return a data set, and findings that deserve a look before training.

    Parameters
    ----------
    data : Dataset, path or name
    reading : Reading, optional
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


def convert_dataset(
    data: Dataset | str | Path,
    output: str | Path,
    *,
    reading: Reading | None = None,
    form: TableForm = "wide",
) -> Dataset:
    """Write a data set in another format, named by the ending, and return it.

    Parameters
    ----------
    data : Dataset, path or name
    output : path
        .npz, .csv, .parquet, .mat or .jsonl.
    reading : Reading, optional
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
    check_output(output, form)
    dataset = as_dataset(data, reading)
    write_dataset(dataset, output, form)
    return dataset


def generate_candidates(
    data: Dataset | str | Path,
    output: str | Path | None = None,
    *,
    reading: Reading | None = None,
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
    reading : Reading, optional
        What the columns of a file mean.
    case, rate, strength, seed
        The random process: as in `comes.generation.generate`.
    form : {"wide", "names", "long"}

    Examples
    --------
    >>> from comes.datasets import make_scenes
    >>> made = generate_candidates(make_scenes(n=500), case="b", rate=0.5)
    >>> round(float((~made.candidates).sum() / (~made.relevant).sum()), 1)
    0.5
    """
    if output is not None:
        check_output(output, form)
    dataset = as_dataset(data, reading)
    X = dataset.known_features() if case == "instance" else None
    relevant = dataset.known_relevant()
    candidates = generate(case, relevant, X, rate=rate, strength=strength, seed=seed)
    answers = Answers.from_candidates(candidates)
    made = replace(dataset, answers=answers, from_complementary=False)
    if output is not None:
        write_dataset(made, output, form)
    return made


def as_dataset(data: Dataset | str | Path, reading: Reading | None) -> Dataset:
    """Return a data set as it is, or read it."""
    return data if isinstance(data, Dataset) else open_dataset(data, reading)


def check_output(output: str | Path, form: TableForm) -> None:
    """Raise unless a data set could be written there."""
    check_writable(Path(output), form)
    check_file_target(output)
