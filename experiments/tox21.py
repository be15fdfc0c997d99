"""Tox21: assays that were run or not, with results that are yes or no, on real molecules.

    python experiments/tox21.py

writes ``experiments/results/tox21.json``: average precision and ROC AUC by assay, over the pairs of
test molecules and assays that were tested, on five 80/20 splits. A molecule is its Morgan
fingerprint of radius 2 with 1024 bits. Its pairs are yes (active), no (inactive), or not asked (not
tested). On candidates, active and not tested are both "still possible".

The table is read from ``$COMES_DATA/chem/tox21.csv.gz``. Fingerprints need rdkit (``pip install
'comes[chem]'``); they are kept in ``--cache FILE``, and with that file training needs no rdkit.
"""

import argparse
import json
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from joblib import Parallel, delayed
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.model_selection import train_test_split

from comes.answers import Answers, State
from comes.errors import ComesError, ComesWarning
from comes.estimator import CandidateClassifier
from comes.files import cache_folder, data_folder, replacing_file

RESULT = Path(__file__).parent / "results" / "tox21.json"
TABLE = Path("chem") / "tox21.csv.gz"  # in $COMES_DATA
RADIUS, BITS = 2, 1024
SPLITS = 5


def read_table() -> pd.DataFrame:
    """Return the table of Tox21: a column for every assay, mol_id and smiles."""
    folder = data_folder()
    if folder is None or not (folder / TABLE).exists():
        raise ComesError(f"Tox21 is read from $COMES_DATA/{TABLE}, which is not there. Put it so.")
    return pd.read_csv(folder / TABLE)


def make_fingerprints(smiles: list[str]) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.bool_]]:
    """Return Morgan fingerprints, (n_molecules, BITS), and which molecules could be read."""
    try:
        from rdkit import Chem, RDLogger
        from rdkit.Chem.rdFingerprintGenerator import GetMorganGenerator
    except ImportError:
        raise ComesError(
            "fingerprints need rdkit; it is not installed. Do pip install 'comes[chem]'."
        ) from None
    RDLogger.DisableLog("rdApp.*")
    generator = GetMorganGenerator(radius=RADIUS, fpSize=BITS)
    molecules = [Chem.MolFromSmiles(text) for text in smiles]
    readable = np.array([molecule is not None for molecule in molecules])
    bits = [generator.GetFingerprintAsNumPy(m) for m in molecules if m is not None]
    return np.stack(bits).astype(np.uint8), readable


def read_molecules(cache: Path) -> tuple[npt.NDArray[np.float32], Answers]:
    """Return fingerprints and answers, from the cache or from the table, which fills the cache."""
    if not cache.exists():
        table = read_table()
        assays = [name for name in table.columns if name not in ("mol_id", "smiles")]
        bits, readable = make_fingerprints(table["smiles"].tolist())
        known = table.loc[readable, assays]
        cache.parent.mkdir(parents=True, exist_ok=True)
        with replacing_file(cache) as temporary, open(temporary, "wb") as file:
            np.savez_compressed(
                file,
                bits=np.packbits(bits, axis=1),
                codes=np.where(known == 1, State.YES, np.where(known == 0, State.NO, 0)),
                assays=np.array(assays),
            )
    with np.load(cache) as kept:
        X = np.unpackbits(kept["bits"], axis=1, count=BITS).astype(np.float32)
        return X, Answers.of_codes(kept["codes"], label_names=kept["assays"].tolist())


def learners(answers: Answers) -> dict[str, tuple[CandidateClassifier, Any]]:
    """Return every classifier with what it sees of the answers about the training rows."""
    asked = answers.asked
    assert asked is not None
    prior = answers.confirmed.sum(axis=0) / asked.sum(axis=0)  # of tested pairs
    candidates = answers.candidates
    return {
        "BCE on candidates": (CandidateClassifier("bce"), candidates),
        "COMES-HL on candidates": (CandidateClassifier("comes-hl"), candidates),
        "COMES-HL on candidates, class prior of tested pairs": (
            CandidateClassifier("comes-hl", class_prior=prior),
            candidates,
        ),
        "likelihood on candidates": (CandidateClassifier("likelihood"), candidates),
        "BCE on yes and no": (CandidateClassifier("bce"), answers),
        "likelihood on yes and no": (CandidateClassifier("likelihood"), answers),
    }


def measure(scores: npt.NDArray[np.floating], answers: Answers) -> dict[str, Any]:
    """Return metrics of tested pairs: by assay, and their means."""
    average_precision, auc = [], []
    for j in range(answers.shape[1]):
        tested = answers.codes[:, j] != State.NOT_ASKED
        truth = answers.codes[tested, j] == State.YES
        average_precision.append(float(average_precision_score(truth, scores[tested, j])))
        auc.append(float(roc_auc_score(truth, scores[tested, j])))
    return {
        "macro_average_precision": round(float(np.mean(average_precision)), 4),
        "macro_auc": round(float(np.mean(auc)), 4),
        "average_precision": [round(value, 4) for value in average_precision],
        "auc": [round(value, 4) for value in auc],
    }


def run(split: int, cache: Path, device: str) -> list[dict[str, Any]]:
    """Return a row per learner for one split."""
    warnings.simplefilter("ignore", ComesWarning)
    X, answers = read_molecules(cache)
    train, test = train_test_split(np.arange(len(X)), test_size=0.2, random_state=split)
    rows = []
    for name, (classifier, labels) in learners(answers[train]).items():
        classifier.set_params(random_state=split, progress=False, device=device)
        started = time.perf_counter()
        scores = classifier.fit(X[train], labels).decision_function(X[test])
        seconds = round(time.perf_counter() - started, 1)
        row = {
            "split": split,
            "learner": name,
            "seconds": seconds,
            **measure(scores, answers[test]),
        }
        print(json.dumps(row), flush=True)
        rows.append(row)
    return rows


def main() -> None:
    """Run all and write the result."""
    parser = argparse.ArgumentParser(description="Learners on Tox21, by what they see.")
    parser.add_argument("--cache", type=Path, default=cache_folder() / "tox21-morgan.npz")
    parser.add_argument("--out", type=Path, default=RESULT)
    parser.add_argument("--splits", type=int, default=SPLITS)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--only-fingerprints", action="store_true")
    options = parser.parse_args()
    X, answers = read_molecules(options.cache)
    print(answers)
    if options.only_fingerprints:
        return
    work = Parallel(n_jobs=options.workers)
    found = work(delayed(run)(k, options.cache, options.device) for k in range(options.splits))
    rows = [row for of_split in found for row in of_split]
    result = {
        "command": "python experiments/tox21.py",
        "molecules": len(X),
        "assays": answers.label_names,
        "tested": int((answers.codes != State.NOT_ASKED).sum()),
        "active": int(answers.confirmed.sum()),
        "rows": rows,
    }
    with replacing_file(options.out) as temporary:
        temporary.write_text(json.dumps(result, indent=1) + "\n")
    metrics = ["macro_average_precision", "macro_auc"]
    print(pd.DataFrame(rows).groupby("learner", sort=False)[metrics].mean().round(4).to_string())


if __name__ == "__main__":
    main()
