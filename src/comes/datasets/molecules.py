"""Tables of molecules and assays, in the form of MoleculeNet (Tox21, ToxCast, MUV).

A column ``smiles`` says what the molecule is, ``mol_id`` perhaps what it is called, and every other
column is an assay: 1 active (yes), 0 inactive (no), nothing where it was not tested (not asked).
The features are Morgan fingerprints.
"""

import warnings
from pathlib import Path

import numpy as np
import pandas as pd

from comes.answers import Answers, State
from comes.datasets.dataset import Dataset
from comes.datasets.fingerprints import morgan_fingerprints
from comes.datasets.reading import Reading
from comes.errors import ComesError, ComesWarning, listed

SMILES, NAME = "smiles", "mol_id"


def read_molecules(path: Path, reading: Reading) -> Dataset:
    """Read a .csv or .csv.gz file of molecules and assays, with Morgan fingerprints as features.

    Molecules that cannot be read are left out, with a warning. Where features come from elsewhere,
    no molecule is looked at.
    """
    try:
        table = pd.read_csv(path, dtype={SMILES: str, NAME: str})
    except (OSError, ValueError) as error:
        raise ComesError(f"{path} cannot be read as csv: {error}.") from None
    if SMILES not in table.columns:
        raise ComesError(
            f"{path} should have a column {SMILES!r} with the molecules, and one for each assay; "
            f"got {listed([str(name) for name in table.columns])}."
        )
    assays = [str(name) for name in table.columns if name not in (SMILES, NAME)]
    answers = _read_results(table[assays], path)
    if reading.has_labels_alone:
        return Dataset(None, assays, answers=answers, items=_name_rows(table))
    X, readable = morgan_fingerprints(table[SMILES].fillna("").tolist())
    if not readable.all():
        unread = table.loc[~readable, SMILES].astype(str).tolist()
        warnings.warn(
            f"{len(unread)} of {len(table)} molecules cannot be read and are left out: "
            f"{listed(unread, 3)}.",
            ComesWarning,
            stacklevel=2,
        )
    names = _name_rows(table[readable])
    return Dataset(X, assays, answers=answers[np.flatnonzero(readable)], items=names)


def _read_results(results: pd.DataFrame, path: Path) -> Answers:
    """Return what the assays say, (n_molecules, n_assays)."""
    values = results.apply(pd.to_numeric, errors="coerce").to_numpy(dtype=float)
    wrong = ~np.isin(values, (0, 1)) & results.notna().to_numpy()
    if wrong.any():
        row, column = np.argwhere(wrong)[0]
        raise ComesError(
            f"{path}: assay {results.columns[column]!r} should be 1 (active), 0 (inactive) or empty"
            f" (not tested); got {results.iat[row, column]!r} at row {row}."
        )
    codes = np.where(values == 1, State.YES, np.where(values == 0, State.NO, State.NOT_ASKED))
    return Answers.from_codes(codes, label_names=[str(name) for name in results.columns])


def _name_rows(table: pd.DataFrame) -> list[str] | None:
    """Return the names of the molecules, where each has its own."""
    if NAME not in table.columns or table[NAME].isna().any() or table[NAME].duplicated().any():
        return None
    return [str(name) for name in table[NAME]]
