"""Morgan fingerprints of molecules, computed once: kept on disk by the hash of the molecules."""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from comes.errors import ComesError
from comes.files import cache_folder, replacing_file
from comes.progress import progress_bar

RADIUS, BITS = 2, 1024


def morgan_fingerprints(smiles: Sequence[str]) -> tuple[Any, npt.NDArray[np.bool_]]:
    """Return fingerprints of radius 2 with 1024 bits, and which molecules could be read.

    Parameters
    ----------
    smiles : sequence of n str

    Returns
    -------
    X : CSR matrix of shape (n_readable, 1024), of 0 and 1
    readable : bool array of shape (n,)
    """
    recipe = json.dumps(["morgan", RADIUS, BITS, list(smiles)])
    kept = cache_folder() / "features" / f"{hashlib.sha256(recipe.encode()).hexdigest()[:32]}.npz"
    found = _read_kept(kept, len(smiles))
    if found is None:
        found = _compute_bits(smiles)
        kept.parent.mkdir(parents=True, exist_ok=True)
        with replacing_file(kept) as temporary, open(temporary, "wb") as file:
            np.savez_compressed(file, bits=found[0], readable=found[1])
    packed, readable = found
    bits = np.unpackbits(packed[readable], axis=1, count=BITS)
    return sparse.csr_matrix(bits, dtype=np.float32), readable


def _read_kept(path: Path, n: int) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.bool_]] | None:
    """Return stored bits, packed, and which rows are readable; None if there are none."""
    try:
        with np.load(path) as stored:
            bits, readable = stored["bits"], stored["readable"]
    except (OSError, ValueError, KeyError, EOFError):
        return None
    return (bits, readable) if bits.shape == (n, BITS // 8) else None


def _compute_bits(
    smiles: Sequence[str],
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.bool_]]:
    """Return the bits of each molecule, packed, and which molecules can be read."""
    try:
        from rdkit import Chem, rdBase
        from rdkit.Chem.rdFingerprintGenerator import GetMorganGenerator
    except ImportError:
        raise ComesError(
            "fingerprints of molecules need rdkit; it is not installed. Do pip install "
            "'comes[chem]', or name a file of features (--features)."
        ) from None
    generator = GetMorganGenerator(radius=RADIUS, fpSize=BITS)
    packed = np.zeros((len(smiles), BITS // 8), dtype=np.uint8)
    readable = np.zeros(len(smiles), dtype=bool)
    with rdBase.BlockLogs(), progress_bar(len(smiles), "fingerprints") as advance:
        for row, text in enumerate(smiles):
            molecule = Chem.MolFromSmiles(text) if text else None
            if molecule is not None:
                packed[row] = np.packbits(generator.GetFingerprintAsNumPy(molecule))
                readable[row] = True
            advance()
    if not readable.any():
        raise ComesError(
            f"none of {len(smiles)} molecules can be read as SMILES (first: {smiles[0]!r})."
        )
    return packed, readable
