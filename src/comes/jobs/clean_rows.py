"""A small sample with true labels, read and matched to the data."""

from pathlib import Path

from comes.datasets import Dataset, Reading
from comes.errors import ComesError
from comes.jobs.data_jobs import as_dataset
from comes.priors import CleanSample


def read_clean(
    dataset: Dataset, clean: Dataset | str | Path | None, reading: Reading | None
) -> CleanSample | None:
    """Return the clean sample, with the answers about its rows if they are items of the data."""
    if clean is None:
        return None
    sample = as_dataset(clean, reading).with_labels(dataset.label_names)
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
