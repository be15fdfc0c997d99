"""Features alone, written to a file with the names of their items, without a copy in memory."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

from comes.datasets.tables import write_blocks
from comes.errors import ComesError
from comes.files import check_file_target, replacing_file

FEATURE_ENDINGS = (".npz", ".parquet", ".npy")
ROWS_AT_ONCE = 4096


def write_features(X: npt.NDArray[np.floating], items: Sequence[str], path: str | Path) -> None:
    """Write features in the form that the ending of the name says.

    Parameters
    ----------
    X : float array of shape (n, d)
        May be mapped into memory.
    items : sequence of n str
    path : str or Path
        .npz holds arrays ``X`` and ``items``, .parquet a column ``item`` and columns ``x0``,
        ``x1``, ...; both are read as features of a file of labels. .npy holds X alone.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "features.npz"
    >>> write_features(np.eye(2), ["a.jpg", "b.jpg"], path)
    >>> np.load(path)["items"].tolist()
    ['a.jpg', 'b.jpg']
    """
    path = check_feature_target(path)
    ending = path.suffix.lower()
    if ending == ".parquet":
        write_blocks(_split_rows(X, items), path)
        return
    with replacing_file(path) as temporary, temporary.open("wb") as file:
        if ending == ".npy":
            np.save(file, X)
        else:
            np.savez(file, X=X, items=np.array(items))


def check_feature_target(path: str | Path) -> Path:
    """Return the path if features can be written there, else raise; call it before a long run.

    Examples
    --------
    >>> check_feature_target("features.xlsx")
    Traceback (most recent call last):
    ...
    comes.errors.ComesError: features.xlsx should end in .npz, .parquet or .npy; got .xlsx.
    """
    path = Path(path)
    if path.suffix.lower() not in FEATURE_ENDINGS:
        got = path.suffix or "no ending"
        raise ComesError(f"{path.name} should end in .npz, .parquet or .npy; got {got}.")
    return check_file_target(path)


def _split_rows(X: npt.NDArray[np.floating], items: Sequence[str]) -> Iterator[pd.DataFrame]:
    """Give the rows of the table in blocks."""
    names = [f"x{j}" for j in range(X.shape[1])]
    for start in range(0, len(X), ROWS_AT_ONCE):
        rows = slice(start, start + ROWS_AT_ONCE)
        block = pd.DataFrame(np.asarray(X[rows]), columns=names)
        block.insert(0, "item", list(items[rows]))
        yield block
