"""Class priors as a table, one row per label: made, and read from a file."""

from collections.abc import Sequence
from pathlib import Path

import numpy.typing as npt
import pandas as pd

from comes.errors import ComesError, listed
from comes.files import expanded
from comes.priors.class_prior import ClassPriorEstimate
from comes.priors.true_priors import count_class_prior


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
    return pd.Series(table["class_prior"].to_numpy(), index=table["label"].astype(str))
