"""The job that estimates class priors."""

from pathlib import Path

import pandas as pd

from comes.datasets import (
    Dataset,
    Reading,
    check_table_name,
    write_table,
)
from comes.files import check_file_target
from comes.jobs.data_jobs import as_dataset
from comes.priors import estimate_class_prior, prior_table
from comes.report import check_plot_name, plot_priors


def estimate_priors(
    data: Dataset | str | Path,
    output: str | Path | None = None,
    *,
    reading: Reading | None = None,
    method: str = "hierarchical",
    plot: str | Path | None = None,
    seed: int = 0,
) -> pd.DataFrame:
    """Return how often each label is relevant, estimated from candidates; write it if asked.

    Parameters
    ----------
    data : Dataset, path or name
        Must have features and candidates.
    output : path, optional
        A .csv or .parquet file, which `fit_model` and `judge_model` take as ``priors``.
    reading : Reading, optional
        What the columns of a file mean.
    method : str
        As in `comes.estimate_class_prior`.
    plot : path, optional
        A .png, .pdf or .svg file: estimated against true priors.
    seed : int

    Returns
    -------
    table : DataFrame
        As `comes.priors.prior_table` makes it: a row per label.

    Examples
    --------
    >>> from comes.datasets import make_scenes
    >>> from comes.jobs import generate_candidates
    >>> scenes = generate_candidates(make_scenes(n=300), rate=0.5)
    >>> list(estimate_priors(scenes, method="candidate-rate").columns[:3])
    ['label', 'class_prior', 'lower']
    """
    if output is not None:
        check_table_name(output)
        check_file_target(output)
    if plot is not None:
        check_plot_name(Path(plot))
        check_file_target(plot)
    dataset = as_dataset(data, reading)
    X, candidates, names = dataset.known_features(), dataset.known_candidates(), dataset.label_names
    estimate = estimate_class_prior(X, candidates, method, seed, names)
    table = prior_table(estimate, names, dataset.relevant)
    if output is not None:
        write_table(table, output)
    if plot is not None:
        plot_priors(table, Path(plot))
    return table
