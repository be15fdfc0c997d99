"""A small sample with true labels, read and matched to the data."""

from dataclasses import replace
from pathlib import Path

from comes.datasets import Dataset, Reading, open_dataset
from comes.errors import ComesError
from comes.priors import CleanSample

WITH_COLUMNS = (".csv", ".parquet", ".arff")  # files whose columns a Reading names


def read_clean(
    dataset: Dataset, clean: Dataset | str | Path | None, reading: Reading | None
) -> CleanSample | None:
    """Return the clean sample, with the answers about its rows if they are items of the data.

    The columns of a file have the names that those of the data have, and hold the truth.
    """
    if clean is None:
        return None
    if not isinstance(clean, Dataset):
        clean = open_dataset(clean, _read_as_truth(Path(clean), reading, dataset.label_names))
    sample = clean.with_labels(dataset.label_names)
    relevant = sample.known_relevant()
    if sample.answers is not None:
        return CleanSample(sample.X, relevant, sample.answers)
    if sample.items is None or dataset.items is None or dataset.answers is None:
        return CleanSample(sample.X, relevant)
    place = {name: row for row, name in enumerate(dataset.items)}
    found = [place.get(name, -1) for name in sample.items]
    if max(found) < 0:
        return CleanSample(sample.X, relevant)
    if min(found) < 0:
        missing = [name for name, row in zip(sample.items, found, strict=True) if row < 0]
        raise ComesError(
            f"{len(missing)} of {len(found)} clean items are not in the data (first: "
            f"{missing[0]!r}). Give items of the data only, or none of them."
        )
    X = dataset.take(found).X if sample.X is None else sample.X
    return CleanSample(X, relevant, dataset.answers[found])


def _read_as_truth(path: Path, reading: Reading | None, label_names: list[str]) -> Reading:
    """Return what the columns of a file of true labels mean, given those of the data."""
    if reading is None or path.suffix.lower() not in WITH_COLUMNS:
        return Reading()
    if reading.labels is None or reading.relevant is not None:
        return replace(reading, labels_are=None)
    return replace(
        reading,
        labels=None,
        relevant=reading.labels,
        label_names=label_names,
        labels_are=None,
        long=None,
        words=None,
    )
