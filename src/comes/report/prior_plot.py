"""A plot of class priors, estimated and true."""

from pathlib import Path

import pandas as pd

from comes.errors import ComesError
from comes.files import replacing_file

ENDINGS = (".png", ".pdf", ".svg")


def check_plot_name(path: Path) -> None:
    """Raise unless a plot can be written under this name.

    Parameters
    ----------
    path : Path

    Examples
    --------
    >>> check_plot_name(Path("priors.txt"))
    Traceback (most recent call last):
    comes.errors.ComesError: priors.txt should end in .png, .pdf or .svg; got .txt.
    """
    if path.suffix.lower() not in ENDINGS:
        raise ComesError(
            f"{path.name} should end in .png, .pdf or .svg; got {path.suffix or 'no ending'}."
        )


def plot_priors(table: pd.DataFrame, path: Path) -> None:
    """Draw estimated class priors with their bounds, against the true ones where they are known.

    Parameters
    ----------
    table : DataFrame
        As `comes.priors.prior_table` makes it: a row per label.
    path : Path
        .png, .pdf or .svg.

    Examples
    --------
    >>> import tempfile
    >>> priors = pd.DataFrame({"label": ["sky"], "class_prior": [0.2]})
    >>> path = Path(tempfile.mkdtemp()) / "priors.svg"
    >>> plot_priors(priors.assign(lower=0.1, upper=0.3), path)
    >>> path.exists()
    True
    """
    from matplotlib.figure import Figure

    check_plot_name(path)
    figure = Figure(figsize=(5, 5), layout="constrained")
    axes = figure.subplots()
    known = "true_prior" in table
    across = table["true_prior"] if known else pd.Series(range(len(table)), dtype=float)
    prior = table["class_prior"]
    bars = [(prior - table["lower"]).clip(lower=0), (table["upper"] - prior).clip(lower=0)]
    axes.errorbar(
        across, prior, yerr=bars, fmt="o", ms=4, lw=0.8, color="#1f6f8b", ecolor="#c9d6df"
    )
    if known:
        axes.plot([0, 1], [0, 1], color="#888888", lw=0.8)
        axes.set_xlim(-0.02, 1.02)
    elif len(table) <= 30:
        axes.set_xticks(across, list(table["label"]), rotation=90)
    axes.set_ylim(-0.02, 1.02)
    axes.set_xlabel("true class prior" if known else "label")
    axes.set_ylabel("estimated class prior, with bounds")
    with replacing_file(path) as temporary:
        figure.savefig(temporary, dpi=150)
