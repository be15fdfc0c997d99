"""The job that estimates class priors."""

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

from comes.datasets import Dataset, ReadOptions
from comes.datasets.table import check_ending, write_table
from comes.errors import ComesError
from comes.estimator.inputs import per_label
from comes.files import check_file_target, refuse_inputs, refuse_same
from comes.jobs.clean_rows import read_clean
from comes.jobs.data_jobs import as_dataset, reading_files
from comes.plots import check_plot_name, plot_class_priors, save_plot
from comes.priors import (
    CleanSample,
    RatesEstimate,
    count_class_prior,
    estimate_answer_rates,
    estimate_class_prior,
    prior_table,
)
from comes.priors.class_prior import KNOWN_PRIOR
from comes.priors.clean_sample import update_prior

FloatArray = npt.NDArray[np.float64]

TWO_SIDED = 1.96  # standard errors on either side of an estimate: 95 %


def estimate_priors(
    data: Dataset | str | Path,
    output: str | Path | None = None,
    *,
    reading: ReadOptions | None = None,
    method: str = "hierarchical",
    exclude_rate: float | list[float] | None = None,
    clean: Dataset | str | Path | None = None,
    plot: str | Path | None = None,
    seed: int = 0,
) -> pd.DataFrame:
    """Return how often each label is relevant, estimated from what was said; write it if asked.

    Parameters
    ----------
    data : Dataset, path or name
        Must have features, and answers or candidates.
    output : path, optional
        A .csv or .parquet file, which `fit_model` and `judge_model` take as ``priors``. Its empty
        column known_prior is to be filled in where a class prior is known.
    reading : ReadOptions, optional
        What the columns of a file mean.
    method : str
        As in `comes.estimate_class_prior`, for candidates.
    exclude_rate : float or one per label, optional
        How often an irrelevant label is excluded, if that is known; for candidates.
    clean : Dataset or path, optional
        A small sample with true labels, which sharpens the estimate.
    plot : path, optional
        A .png, .pdf or .svg file: estimated against true priors.
    seed : int

    Returns
    -------
    table : DataFrame
        As `comes.priors.prior_table` makes it: a row per label. For answers with the rates of "no"
        and "yes".

    Examples
    --------
    >>> from comes.datasets import make_scenes
    >>> from comes.jobs import generate_candidates
    >>> scenes = generate_candidates(make_scenes(n=300), rate=0.5)
    >>> list(estimate_priors(scenes, exclude_rate=0.5).columns[:3])
    ['label', 'class_prior', 'lower']
    """
    if output is not None:
        check_ending(output)
        check_file_target(output)
        refuse_inputs(output, data, clean, *reading_files(reading))
    if plot is not None:
        check_plot_name(plot)
        check_file_target(plot)
        refuse_inputs(plot, data, clean, *reading_files(reading))
    refuse_same(output, plot)
    dataset = as_dataset(data, reading)
    sample = read_clean(dataset, clean, reading)
    table = _tabulate(dataset, method, exclude_rate, seed)
    if sample is not None:
        table = _sharpen(table, sample)
    if output is not None:  # with a column to fill in, beside the names
        written = table.copy()
        written.insert(1, KNOWN_PRIOR, np.nan)
        write_table(written, output)
    if plot is not None:
        save_plot(plot_class_priors(table), plot)
    return table


def _tabulate(
    dataset: Dataset, method: str, exclude_rate: float | list[float] | None, seed: int
) -> pd.DataFrame:
    """Return estimated class priors, a row per label."""
    names, answers = dataset.label_names, dataset.known_answers()
    if answers.kind != "candidates":
        if exclude_rate is not None:
            raise ComesError("exclude_rate (--exclude-rate) is for candidates. Leave it out.")
        if method != "hierarchical":
            raise ComesError(f"method (--method) is for candidates; got {method!r}. Leave it out.")
        if not (answers.excluded | answers.confirmed).any():
            raise ComesError("nothing can be estimated: nobody said no or yes about any pair.")
        rates = estimate_answer_rates(
            dataset.known_features(), answers, random_state=seed, label_names=names
        )
        return _tabulate_rates(rates, dataset)
    rate = None if exclude_rate is None else per_label(exclude_rate, "exclude_rate", names)
    estimate = estimate_class_prior(
        dataset.known_features(),
        answers,
        method,
        exclude_rate=rate,
        random_state=seed,
        label_names=names,
    )
    relevant = None if dataset.relevant is None else dataset.known_relevant()
    return prior_table(estimate, names, relevant)


def _tabulate_rates(found: RatesEstimate, dataset: Dataset) -> pd.DataFrame:
    """Return class priors and rates estimated from answers, a row per label."""
    table = pd.DataFrame(
        {
            "label": dataset.label_names,
            "class_prior": found.class_prior,
            **_bound(found.class_prior, found.class_prior_error),
            "standard_error": found.class_prior_error,
            "no_rate": found.rates.no_rate,
            "no_error": found.rates.no_error,
            "yes_rate": found.rates.yes_rate,
            "yes_error": found.rates.yes_error,
            "flag": found.flags,
        }
    )
    if dataset.relevant is not None:
        table["true_prior"] = count_class_prior(dataset.known_relevant())
        table["error"] = table["class_prior"] - table["true_prior"]
    return table


def _sharpen(table: pd.DataFrame, clean: CleanSample) -> pd.DataFrame:
    """Return the table with class priors that a clean sample sharpens."""
    prior, error = update_prior(table["class_prior"], table["standard_error"], clean.relevant)
    table = table.assign(class_prior=prior, **_bound(prior, error), standard_error=error)
    if "true_prior" in table:
        table["error"] = table["class_prior"] - table["true_prior"]
    return table


def _bound(prior: FloatArray, error: FloatArray) -> dict[str, FloatArray]:
    """Return the ends of the 95 % intervals of class priors."""
    lower, upper = prior - TWO_SIDED * error, prior + TWO_SIDED * error
    return {"lower": np.maximum(lower, 0), "upper": np.minimum(upper, 1)}
