"""Tox21: assays that were run or not, with results that are yes or no, on real molecules.

    python experiments/tox21.py

writes ``experiments/results/tox21.json``: average precision and ROC AUC by assay, over the pairs of
test molecules and assays that were tested, on five 80/20 splits. A molecule is its Morgan
fingerprint of radius 2 with 1024 bits. Its pairs are yes (active), no (inactive), or not asked (not
tested). On candidates, active and not tested are both "still possible". The likelihood is trained
as ``TRAINING`` says (one network, 40 epochs in batches of 256, bits divided by their deviation),
which is not the default of `CandidateClassifier`; COMES-HL and BCE as the paper trains.

The table is read from ``$COMES_DATA/chem/tox21.csv.gz``. Fingerprints need rdkit (``pip install
'comes[chem]'``); they are kept in ``--cache FILE``, and with that file training needs no rdkit.
What the result holds already is not run again.
"""

import argparse
import itertools
import json
import time
import warnings
from pathlib import Path
from typing import Any, NamedTuple

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
from comes.flat_settings import from_flat, frozen_settings

RESULT = Path(__file__).parent / "results" / "tox21.json"
TABLE = Path("chem") / "tox21.csv.gz"  # in $COMES_DATA
RADIUS, BITS = 2, 1024
TRAINING: dict[str, Any] = {  # of the likelihood; answers without a pull to class priors
    "optimizer": "adam",
    "learning_rate": 5e-4,
    "epochs": 40,
    "batch_size": 256,
    "dropout": 0.0,
    "n_networks": 1,
    "starts_at_prior": True,
}


class Learner(NamedTuple):
    """A method, what it sees, and whether it knows the class prior of tested pairs."""

    method: str
    sees: str
    knows_prior: bool = False


LEARNERS = {
    "BCE on candidates": Learner("bce", "candidates"),
    "COMES-HL on candidates": Learner("comes-hl", "candidates"),
    "COMES-HL on candidates, class prior of tested pairs": Learner("comes-hl", "candidates", True),
    "likelihood on candidates": Learner("likelihood", "candidates"),
    "BCE on yes and no": Learner("bce", "yes and no"),
    "likelihood on yes and no": Learner("likelihood", "yes and no"),
}


def read_table() -> pd.DataFrame:
    """Return the table of Tox21: a column for every assay, mol_id and smiles."""
    folder = data_folder()
    if folder is None or not (folder / TABLE).exists():
        raise ComesError(f"Tox21 is read from $COMES_DATA/{TABLE}, which is not there. Put it so.")
    return pd.read_csv(folder / TABLE)


def make_fingerprints(smiles: list[str]) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.bool_]]:
    """Return Morgan fingerprints, (n_molecules, BITS), and which molecules could be read."""
    try:
        from rdkit import Chem, rdBase
        from rdkit.Chem.rdFingerprintGenerator import GetMorganGenerator
    except ImportError:
        raise ComesError(
            "fingerprints need rdkit; it is not installed. Do pip install 'comes[chem]'."
        ) from None
    generator = GetMorganGenerator(radius=RADIUS, fpSize=BITS)
    with rdBase.BlockLogs():  # unreadable molecules are counted, not printed
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
        return X, Answers.from_codes(kept["codes"], label_names=kept["assays"].tolist())


def look(answers: Answers, sees: str) -> tuple[Any, npt.NDArray[np.float64]]:
    """Return what a learner sees, and the class prior of tested pairs."""
    asked = answers.asked
    assert asked is not None
    prior = answers.confirmed.sum(axis=0) / asked.sum(axis=0)
    return (answers if sees == "yes and no" else answers.candidates), prior


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


def make_classifier(method: str, sees: str, **known: Any) -> CandidateClassifier:
    """Return a classifier with what the learner knows, not fitted."""
    settings = {"method": method, "scale": "standard", **known}
    if method != "likelihood":
        return CandidateClassifier(**from_flat(frozen_settings(method, None, None, settings)))
    settings["prior_weight"] = None if sees == "candidates" else 0.0
    return CandidateClassifier(**from_flat({**TRAINING, **settings}))


def run(split: int, title: str, cache: Path, device: str) -> dict[str, Any]:
    """Return what a learner makes of one split."""
    warnings.simplefilter("ignore", ComesWarning)
    method, sees, knows_prior = LEARNERS[title]
    X, answers = read_molecules(cache)
    train, test = train_test_split(np.arange(len(X)), test_size=0.2, random_state=split)
    labels, prior = look(answers[train], sees)
    classifier = make_classifier(
        method,
        sees,
        class_prior=prior if knows_prior else None,
        random_state=split,
        progress=False,
        device=device,
    )
    started = time.perf_counter()
    scores = classifier.fit(X[train], labels).decision_function(X[test])
    seconds = round(time.perf_counter() - started, 1)
    row = {"split": split, "learner": title, "seconds": seconds}
    return row | measure(scores, answers[test])


def main() -> None:
    """Run what is missing, and write the result after every training."""
    parser = argparse.ArgumentParser(description="Learners on Tox21, by what they see.")
    parser.add_argument("--cache", type=Path, help="file of the fingerprints")
    parser.add_argument("--out", type=Path, default=RESULT)
    parser.add_argument("--splits", nargs="+", type=int, default=range(5))
    parser.add_argument("--learners", nargs="+", default=list(LEARNERS), choices=list(LEARNERS))
    parser.add_argument("--workers", type=int, default=2, help="trainings at a time")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--only-fingerprints", action="store_true", help="fill the cache and stop")
    options = parser.parse_args()
    options.cache = options.cache or cache_folder() / "tox21-morgan.npz"
    answers = read_molecules(options.cache)[1]
    print(answers)
    if options.only_fingerprints:
        return
    kept = json.loads(options.out.read_text()) if options.out.exists() else {}
    rows = kept.get("rows", [])
    done = {(row["split"], row["learner"]) for row in rows}
    tasks = [t for t in itertools.product(options.splits, options.learners) if t not in done]
    work = Parallel(n_jobs=options.workers, return_as="generator_unordered")
    for row in work(delayed(run)(*task, options.cache, options.device) for task in tasks):
        print(json.dumps(row), flush=True)
        rows.append(row)
        write(options.out, rows, answers)
    metrics = ["macro_average_precision", "macro_auc"]
    print(pd.DataFrame(rows).groupby("learner", sort=False)[metrics].mean().round(4).to_string())


def write(path: Path, rows: list[dict[str, Any]], answers: Answers) -> None:
    """Write the result, in an order that does not depend on what was done first."""
    rows.sort(key=lambda row: (row["split"], list(LEARNERS).index(row["learner"])))
    result = {
        "command": "python experiments/tox21.py",
        "molecules": len(answers),
        "assays": answers.label_names,
        "tested": int((answers.codes != State.NOT_ASKED).sum()),
        "active": int(answers.confirmed.sum()),
        "rows": rows,
    }
    with replacing_file(path) as temporary:
        temporary.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
