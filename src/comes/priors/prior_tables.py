"""Class priors as a table, one row per label: made, and read from a file."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

from comes.answers.convert import match_names
from comes.errors import ComesError, listed
from comes.files import expanded
from comes.priors.class_prior import ClassPriorEstimate
from comes.priors.found_priors import fill_class_prior
from comes.priors.true_priors import count_class_prior

TO_FILL_IN = "known_prior"  # the column for what somebody knows; where it is empty, nothing changes


def prior_table(
    estimate: ClassPriorEstimate,
    label_names: Sequence[str],
    relevant: npt.ArrayLike | None = None,
) -> pd.DataFrame:
    """Return an estimate as a table with one row per label, and its error if the truth is known.

    Parameters
    ----------
    estimate : ClassPriorEstimate
    label_names : sequence of n_labels str
    relevant : bool array of shape (n_samples, n_labels), optional

    Returns
    -------
    table : DataFrame
        label, class_prior, lower, upper, standard_error, exclude_rate and flag; with relevant
        labels also true_prior and error.

    Examples
    --------
    >>> import numpy as np
    >>> one = np.array([0.5])
    >>> estimate = ClassPriorEstimate(one, one, one, one, one, ("ok",))
    >>> table = prior_table(estimate, ["sky"], relevant=[[1], [0], [0], [0]])
    >>> table[["label", "class_prior", "true_prior", "error"]].values.tolist()
    [['sky', 0.5, 0.25, 0.25]]
    """
    table = pd.DataFrame(
        {
            "label": list(label_names),
            "class_prior": estimate.class_prior,
            "lower": estimate.lower,
            "upper": estimate.upper,
            "standard_error": estimate.standard_error,
            "exclude_rate": estimate.exclude_rate,
            "flag": estimate.flags,
        }
    )
    if relevant is not None:
        table["true_prior"] = count_class_prior(relevant)
        table["error"] = table["class_prior"] - table["true_prior"]
    return table


def read_priors(path: str | Path) -> "pd.Series[float]":
    r"""Read class priors from a csv or parquet file with the columns label and class_prior.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    class_prior : Series
        Indexed by label.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "priors.csv"
    ...     _ = path.write_text("label,class_prior\nsky,0.25\nsea,0.1\n")
    ...     read_priors(path).to_dict()
    {'sky': 0.25, 'sea': 0.1}
    """
    table = _read_prior_table(path)
    known = table["class_prior"].where(table[TO_FILL_IN].isna(), table[TO_FILL_IN])
    return pd.Series(known.to_numpy(), index=table["label"])


def read_prior_estimate(
    path: str | Path, label_names: Sequence[str]
) -> "ClassPriorEstimate | pd.Series[float]":
    r"""Read class priors that know how far they may be off, if the file says so.

    Parameters
    ----------
    path : str or Path
        A csv or parquet file with the columns label and class_prior, and standard_error if the
        priors were estimated: a file that ``comes priors -o`` wrote.
    label_names : sequence of n_labels str
        The order in which the labels are wanted.

    Returns
    -------
    class_prior : ClassPriorEstimate, or Series as `read_priors` returns it
        An estimate if there are standard errors, unless all priors are known; what else the file
        does not have is NaN in it. Labels with neither a number nor an estimate are NaN in both.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "priors.csv"
    ...     _ = path.write_text("label,class_prior,standard_error\nsky,0.25,0.02\nsea,0.1,0.01\n")
    ...     read_prior_estimate(path, ["sea", "sky"]).standard_error
    array([0.01, 0.02])
    """
    table = _read_prior_table(path)
    if "standard_error" not in table or table[TO_FILL_IN].notna().all():
        return read_priors(path)
    table = table.iloc[match_names(table["label"].tolist(), label_names)]
    names = ("class_prior", "exclude_rate", "lower", "upper", "standard_error")
    numbers = table.reindex(columns=names).apply(pd.to_numeric, errors="coerce").to_numpy(float)
    unread = table["class_prior"].notna().to_numpy() & np.isnan(numbers[:, 0])
    if unread.any():
        raise ComesError(
            f"the column class_prior of {Path(path).name} must hold numbers, or nothing where a "
            f"prior is not known; got {table['class_prior'][unread].iloc[0]!r}. Correct it."
        )
    if (numbers[:, -1] < 0).any():
        raise ComesError(
            f"the column standard_error of {Path(path).name} must hold numbers of at least 0, or "
            f"nothing where it is not known; got {numbers[:, -1].min():g}."
        )
    flags = table["flag"].fillna("ok") if "flag" in table else ["ok"] * len(table)
    prior, rate, lower, upper, error = np.ascontiguousarray(numbers.T)
    estimate = ClassPriorEstimate(prior, rate, lower, upper, error, tuple(map(str, flags)))
    known = table[TO_FILL_IN].to_numpy(float)
    return fill_class_prior(known, estimate) if np.isfinite(known).any() else estimate


def _read_prior_table(path: str | Path) -> pd.DataFrame:
    """Return a table with at least the columns label and class_prior."""
    from comes.datasets import check_table_name, read_table

    path = expanded(path)
    check_table_name(path)
    table = read_table(path, ["label"])
    missing = [name for name in ("label", "class_prior") if name not in table.columns]
    if missing:
        raise ComesError(
            f"{path.name} has no column {missing[0]!r}; the columns label and class_prior are "
            f"needed, as 'comes priors -o' writes them. It has {listed(list(table.columns))}."
        )
    table = table.assign(label=table["label"].astype(str))
    repeated = table["label"][table["label"].duplicated()]
    if len(repeated):
        raise ComesError(
            f"{path.name} must have one row for each label; got {repeated.iloc[0]!r} more than "
            "once. Keep one."
        )
    return table.assign(**{TO_FILL_IN: _read_known(table, path.name)})


def _read_known(table: pd.DataFrame, name: str) -> "pd.Series[float]":
    """Return what was filled in, NaN where nothing was."""
    if TO_FILL_IN not in table:
        return pd.Series(np.nan, index=table.index)
    known = pd.to_numeric(table[TO_FILL_IN], errors="coerce")
    wrong = table[TO_FILL_IN].notna() & ~known.between(0, 1)
    if wrong.any():
        first = table[wrong].iloc[0]
        raise ComesError(
            f"the column {TO_FILL_IN} of {name} must hold numbers in [0, 1], or nothing where a "
            f"prior is not known; got {first[TO_FILL_IN]!r} for label {first['label']!r}. Correct "
            "it."
        )
    return known
