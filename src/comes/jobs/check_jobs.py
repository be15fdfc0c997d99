"""The job that tests the central assumption on rows whose true labels are known."""

from pathlib import Path

from comes.datasets import Dataset, Images, ReadOptions
from comes.errors import ComesError
from comes.jobs.clean_rows import read_clean
from comes.jobs.data_jobs import as_dataset
from comes.priors import CleanSample
from comes.selection import check_constant_rate
from comes.selection.checks import AssumptionCheck


def check_assumption(
    data: Dataset | str | Path,
    clean: Dataset | str | Path | None = None,
    *,
    reading: ReadOptions | None = None,
    seed: int = 0,
) -> AssumptionCheck:
    """Test whether irrelevant labels are excluded at a constant rate, whatever the row.

    Parameters
    ----------
    data : Dataset, path or name
        With features and what was said; and with true labels, unless ``clean`` has them.
    clean : Dataset or path, optional
        True labels of some items of the data.
    reading : ReadOptions, optional
        What the columns of a file mean.
    seed : int

    Returns
    -------
    check : AssumptionCheck
        As `comes.selection.check_constant_rate` returns it.

    Examples
    --------
    >>> from comes.datasets import make_scenes
    >>> from comes.jobs import generate_candidates
    >>> scenes = generate_candidates(make_scenes(n=300), rate=0.5)
    >>> check_assumption(scenes).conclusion[:14]
    'For none of 10'
    """
    dataset = as_dataset(data, reading)
    sample = read_clean(dataset, clean, reading)
    if sample is None and dataset.relevant is not None:
        sample = CleanSample(dataset.X, dataset.known_relevant(), dataset.known_answers())
    has_features = sample is not None and not isinstance(sample.X, Images | None)
    if sample is None or sample.answers is None or not has_features:
        raise ComesError(
            "the check needs rows with features, true labels and what was said about them: give "
            "the true labels of some items of the data (--clean FILE, with a column 'item')."
        )
    known, drawn = ~sample.relevant, sample.answers.without_chosen()
    if drawn.asked is not None:
        known &= drawn.asked
    check = check_constant_rate(sample.X, drawn.candidates, known, seed=seed)
    check.per_label.insert(0, "label", dataset.label_names)
    return check
