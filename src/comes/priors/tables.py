"""Class priors as a table, one row per label: made, and read from a file."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

from comes.answers.convert import match_names
from comes.errors import ComesError, listed
from comes.files import expanded
from comes.priors.class_prior import ClassPriorEstimate, count_class_prior, fill_class_prior

KNOWN_PRIOR = "known_prior"  # the column to fill in; where it is empty, the estimate counts


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


def read_priors(
    path: str | Path, label_names: Sequence[str] | None = None
) -> "ClassPriorEstimate | pd.Series[float]":
    r"""Read class priors from a table, with their standard errors if it has them.

    Parameters
    ----------
    path : str or Path
        A csv or parquet file with the columns label and class_prior, and standard_error if the
        priors were estimated: a file that ``comes priors -o`` wrote. Numbers in its column
        known_prior take the place of estimates.
    label_names : sequence of n_labels str, optional
        The order in which an estimate has the labels; by default that of the file.

    Returns
    -------
    class_prior : ClassPriorEstimate, or Series indexed by label
        An estimate if there are standard errors, unless all priors are known; what else the file
        does not have is NaN in it. Labels with neither a number nor an estimate are NaN in both.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "priors.csv"
    ...     _ = path.write_text("label,class_prior,standard_error\nsky,0.25,0.02\nsea,0.1,0.01\n")
    ...     estimate = read_priors(path, ["sea", "sky"])
    ...     _ = path.write_text("label,class_prior\nsky,0.25\nsea,0.1\n")
    ...     series = read_priors(path)
    >>> estimate.standard_error, series.to_dict()
    (array([0.01, 0.02]), {'sky': 0.25, 'sea': 0.1})
    """
    path = expanded(path)
    table = _read_table(path)
    known = table[KNOWN_PRIOR]
    if "standard_error" not in table or known.notna().all():
        values = table["class_prior"].where(known.isna(), known)
        return pd.Series(values.to_numpy(), index=table["label"])
    if label_names is not None:
        table = table.iloc[match_names(table["label"].tolist(), label_names)]
    columns = ("class_prior", "exclude_rate", "lower", "upper", "standard_error")
    numbers = table.reindex(columns=columns).apply(pd.to_numeric, errors="coerce").to_numpy(float)
    prior, rate, lower, upper, error = np.ascontiguousarray(numbers.T)
    unread = table["class_prior"].notna().to_numpy() & np.isnan(prior)
    if unread.any():
        raise ComesError(
            f"the column class_prior of {path.name} must hold numbers, or nothing where a prior is "
            f"not known; got {table['class_prior'][unread].iloc[0]!r}. Correct it."
        )
    if (error < 0).any():
        raise ComesError(
            f"the column standard_error of {path.name} must hold numbers of at least 0, or nothing "
            f"where it is not known; got {np.nanmin(error):g}."
        )
    flags = table["flag"].fillna("ok") if "flag" in table else ["ok"] * len(table)
    estimate = ClassPriorEstimate(prior, rate, lower, upper, error, tuple(map(str, flags)))
    value = table[KNOWN_PRIOR].to_numpy(float)
    return fill_class_prior(value, estimate) if np.isfinite(value).any() else estimate


def _read_table(path: Path) -> pd.DataFrame:
    """Return a table with the columns label, class_prior and known_prior, one row per label."""
    from comes.datasets import check_table_name, read_table

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
    if KNOWN_PRIOR not in table:
        return table.assign(**{KNOWN_PRIOR: np.nan})
    known = pd.to_numeric(table[KNOWN_PRIOR], errors="coerce")
    wrong = table[KNOWN_PRIOR].notna() & ~known.between(0, 1)
    if wrong.any():
        first = table[wrong].iloc[0]
        raise ComesError(
            f"the column {KNOWN_PRIOR} of {path.name} must hold numbers in [0, 1], or nothing "
            f"where a prior is not known; got {first[KNOWN_PRIOR]!r} for label "
            f"{first['label']!r}. Correct it."
        )
    return table.assign(**{KNOWN_PRIOR: known})
