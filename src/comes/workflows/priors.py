"""Class priors and rates, estimated from a data set, with a clean sample where there is one."""

from dataclasses import replace
from pathlib import Path
from typing import Any
from warnings import warn

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.sparse import issparse

from comes.answers.convert import match_names
from comes.datasets import Dataset, Images, ReadOptions
from comes.datasets.opening import open_truth
from comes.datasets.table import check_ending, write_table
from comes.errors import ComesError, ComesWarning, listed
from comes.estimator.inputs import per_label
from comes.files import check_file_target, refuse_inputs
from comes.priors import (
    ClassPriorEstimate,
    CleanSample,
    count_class_prior,
    estimate_answer_rates,
    estimate_class_prior,
    fill_class_prior,
    prior_table,
    read_priors,
)
from comes.priors.class_prior import KNOWN_PRIOR
from comes.priors.clean_sample import update_prior
from comes.selection import check_constant_rate
from comes.selection.checks import AssumptionCheck
from comes.tables import ColumnEncoder
from comes.tables.columns import needs_encoding
from comes.workflows.data import as_dataset, reading_files

FloatArray = npt.NDArray[np.float64]
TWO_SIDED = 1.96  # standard errors on either side of an estimate: 95 %


def read_clean(
    dataset: Dataset, clean: Dataset | str | Path | None, reading: ReadOptions | None
) -> CleanSample | None:
    """Return the clean sample, with the answers about its rows if they are items of the data."""
    if clean is None:
        return None
    if reading is not None and reading.labels is not None:
        reading = replace(reading, label_names=dataset.label_names)  # a file may miss some
    sample = clean if isinstance(clean, Dataset) else open_truth(clean, reading)
    if sample.relevant is None:
        raise ComesError(
            "the clean sample (--clean) must have true labels; got none. Call their columns "
            "'relevant:NAME', or as the labels of the data are called."
        )
    sample = sample.align_labels(dataset.label_names)
    place = {name: row for row, name in enumerate(dataset.items or ())}
    rows = [place.get(name, -1) for name in sample.items or ()]
    if sample.answers is not None or dataset.answers is None or max(rows, default=-1) < 0:
        return CleanSample(sample.X, sample.known_relevant(), sample.answers)
    if sample.items is not None and -1 in rows:
        raise ComesError(
            f"{rows.count(-1)} of {len(rows)} clean items are not in the data (first: "
            f"{sample.items[rows.index(-1)]!r}). Give items of the data only, or none of them."
        )
    of_data = dataset.take(rows)
    _refuse_other_features(sample, of_data, dataset.X)
    return CleanSample(of_data.X, sample.known_relevant(), of_data.answers)


def _refuse_other_features(sample: Dataset, of_data: Dataset, whole: Any) -> None:
    """Raise an error if clean items have other features than the items of that name in the data."""
    pair = (sample.X, of_data.X)
    if sample.X is None or isinstance(whole, Images):
        return
    if isinstance(whole, pd.DataFrame) and needs_encoding(whole):
        encoder = ColumnEncoder().fit(whole)
        pair = tuple(map(encoder.transform, pair))
    first, second = (np.asarray(X.todense() if issparse(X) else X) for X in pair)
    if first.shape != second.shape:
        return  # the estimator says what it wants
    differ = ~np.isclose(first, second, rtol=1e-4, atol=1e-6).all(axis=1)
    if differ.any() and of_data.items is not None:
        raise ComesError(
            f"{differ.sum()} clean items have other features than the data has for items of that "
            f"name (first: {of_data.items[differ.argmax()]!r}). Name other items otherwise, or "
            "leave the names out."
        )


def read_given_priors(path: str | Path, dataset: Dataset, seed: Any = 0) -> Any:
    """Return the class priors of a table; those that it leaves open are estimated from the data."""
    names = dataset.label_names
    given = read_priors(path, names)
    if isinstance(given, ClassPriorEstimate):
        known: npt.NDArray[Any] = given.class_prior
    else:
        known = given.to_numpy()[match_names(list(map(str, given.index)), names)]
    is_open = np.isnan(known)
    if not is_open.any():
        return given
    open_names = listed([names[label] for label in np.flatnonzero(is_open)])
    if isinstance(dataset.X, Images):
        raise ComesError(
            f"{Path(path).name} must have a class prior for every label, as none is estimated from "
            f"images beforehand; got none for {open_names}. Fill it in, or leave the table out."
        )
    warn(
        f"{Path(path).name} has no class prior for {open_names}: it is estimated from the data.",
        ComesWarning,
        stacklevel=2,
    )
    estimate = estimate_class_prior(
        dataset.known_features(), dataset.known_answers(), random_state=seed, label_names=names
    )
    filled = fill_class_prior(known, estimate)
    if not isinstance(given, ClassPriorEstimate):
        return filled
    parts = ("class_prior", "exclude_rate", "lower", "upper", "standard_error", "flags")
    own = {part: np.where(is_open, getattr(filled, part), getattr(given, part)) for part in parts}
    return ClassPriorEstimate(**own | {"flags": tuple(map(str, own["flags"]))})


def estimate_priors(
    data: Dataset | str | Path,
    output: str | Path | None = None,
    *,
    reading: ReadOptions | None = None,
    method: str = "hierarchical",
    exclude_rate: float | list[float] | None = None,
    clean: Dataset | str | Path | None = None,
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
    seed : int

    Returns
    -------
    table : DataFrame
        As `comes.priors.prior_table` makes it: a row per label. For answers with the rates of "no"
        and "yes".

    Examples
    --------
    >>> from comes.datasets import make_scenes
    >>> from comes.generation import case_b
    >>> scenes = make_scenes(n=300)
    >>> candidates = case_b(scenes.relevant, 0.5, seed=0)
    >>> data = Dataset(scenes.X, scenes.label_names, candidates)
    >>> list(estimate_priors(data, exclude_rate=0.5).columns[:3])
    ['label', 'class_prior', 'lower']
    """
    if output is not None:
        check_ending(output)
        check_file_target(output)
        refuse_inputs(output, data, clean, *reading_files(reading))
    dataset = as_dataset(data, reading)
    sample = read_clean(dataset, clean, reading)
    table = _tabulate(dataset, method, exclude_rate, seed)
    if sample is not None:
        prior, error = update_prior(table["class_prior"], table["standard_error"], sample.relevant)
        table = table.assign(class_prior=prior, standard_error=error, **_bound(prior, error))
    if dataset.relevant is not None:
        table["true_prior"] = count_class_prior(dataset.known_relevant())
        table["error"] = table["class_prior"] - table["true_prior"]
    if output is not None:  # with a column to fill in, beside the names
        written = table.copy()
        written.insert(1, KNOWN_PRIOR, np.nan)
        write_table(written, output)
    return table


def _tabulate(
    dataset: Dataset, method: str, exclude_rate: float | list[float] | None, seed: int
) -> pd.DataFrame:
    """Return estimated class priors and rates, a row per label."""
    names, X, answers = dataset.label_names, dataset.known_features(), dataset.known_answers()
    common: dict[str, Any] = {"random_state": seed, "label_names": names}
    if answers.kind == "candidates":
        rate = None if exclude_rate is None else per_label(exclude_rate, "exclude_rate", names)
        estimate = estimate_class_prior(X, answers, method, exclude_rate=rate, **common)
        return prior_table(estimate, names)
    if exclude_rate is not None:
        raise ComesError("exclude_rate (--exclude-rate) is for candidates. Leave it out.")
    if method != "hierarchical":
        raise ComesError(f"method (--method) is for candidates; got {method!r}. Leave it out.")
    if not (answers.excluded | answers.confirmed).any():
        raise ComesError("nothing can be estimated: nobody said no or yes about any pair.")
    found = estimate_answer_rates(X, answers, **common)
    columns = {
        "label": names,
        "class_prior": found.class_prior,
        **_bound(found.class_prior, found.class_prior_error),
        "standard_error": found.class_prior_error,
        "no_rate": found.rates.no_rate,
        "no_error": found.rates.no_error,
        "yes_rate": found.rates.yes_rate,
        "yes_error": found.rates.yes_error,
        "flag": found.flags,
    }
    return pd.DataFrame(columns)


def _bound(prior: FloatArray, error: FloatArray) -> dict[str, FloatArray]:
    """Return the ends of the 95 % intervals of class priors."""
    lower, upper = prior - TWO_SIDED * error, prior + TWO_SIDED * error
    return {"lower": np.maximum(lower, 0), "upper": np.minimum(upper, 1)}


def check_assumption(
    data: Dataset | str | Path,
    clean: Dataset | str | Path | None = None,
    *,
    reading: ReadOptions | None = None,
    seed: int = 0,
) -> AssumptionCheck:
    """Test whether irrelevant labels are excluded at a constant rate, whatever the row.

    The data needs features, answers or candidates, and true labels, unless ``clean`` has them.
    """
    dataset = as_dataset(data, reading)
    sample = read_clean(dataset, clean, reading)
    if sample is None and dataset.relevant is not None:
        sample = CleanSample(dataset.X, dataset.known_relevant(), dataset.known_answers())
    if sample is None or sample.answers is None or isinstance(sample.X, Images | None):
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
