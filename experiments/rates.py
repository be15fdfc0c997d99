"""How well exclude rates and class priors are estimated where pairs are excluded independently.

    python experiments/rates.py

writes ``experiments/results/rates.json``. Its ``rows`` have a data set, a rate (0.1, 0.5 and 0.9
for all labels, or "by label", drawn from 0.1 to 0.9), and means over labels and seeds of

- ``rate_error``: |estimate - p_j| / p_j, by estimator,
- ``prior_error``: |estimate - pi_j|, by estimator; beside them ``plug-in``, max(0, 1 - share / p_j)
  with the true rate, and ``known``, the estimate with ``exclude_rate=p_j``,
- ``inside`` and ``standard_error``: how many labels of the default estimate are within two
  standard errors of their class prior, and their mean; ``rate_inside`` likewise for the rate.

The first 500 rows in a random order stand beside four of the sets. ``real`` has the error of class
priors on the candidates that data sets come with, by estimator.
"""

import json
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from comes.datasets import Dataset, make_scenes, open_dataset
from comes.errors import ComesWarning
from comes.files import replacing_file
from comes.generation import case_a
from comes.priors import (
    class_prior,
    count_class_prior,
    estimate_class_prior,
    rate_model,
)

RESULT = Path(__file__).parent / "results" / "rates.json"
SETS = ("enron", "bibtex", "yeast", "scene", "emotions", "scenes", "mirflickr5000")
SMALL_SETS = ("yeast", "scene", "scenes", "mirflickr5000")
REAL_SETS = ("mirflickr5000", "YeastCC", "YeastMF", "YeastBP")
RATES = (0.1, 0.5, 0.9, "by label")
METHODS = ("hierarchical", "best-bin")
N_SEEDS, N_SMALL_SEEDS, FEW = 5, 3, 500


def load(name: str) -> Dataset:
    """Return a data set with true labels."""
    return make_scenes("train", 5000) if name == "scenes" else open_dataset(name)


def share_scores() -> None:
    """Let the estimators share the scores of the same rows."""
    score = rate_model.score_out_of_fold
    last: dict[int, npt.NDArray[np.float32]] = {}

    def score_once(X: Any, candidates: Any, seed: int) -> Any:
        key = hash((candidates.tobytes(), seed))
        if key not in last:
            last.clear()
            last[key] = score(X, candidates, seed)
        return last[key]

    vars(class_prior)["score_out_of_fold"] = score_once


def judge(X: Any, relevant: Any, rate: float | str, seed: int) -> dict[str, Any]:
    """Return the errors of every estimator on one draw."""
    q = relevant.shape[1]
    draws = np.random.default_rng(1000 + seed).uniform(0.1, 0.9, q)
    p = draws if isinstance(rate, str) else np.full(q, rate)
    candidates = case_a(relevant, flip_rate=1 - p, seed=seed)
    share, truth = 1 - candidates.mean(axis=0), relevant.mean(axis=0)
    seen = share > 0  # nothing is known of a label that no row excludes
    found = {m: estimate_class_prior(X, candidates, m, seed) for m in METHODS}
    default = found[METHODS[0]]
    rate_error = np.asarray(default.exclude_rate_error)
    known = estimate_class_prior(None, candidates, exclude_rate=p)
    gap = {m: np.abs(e.class_prior - truth)[seen] for m, e in {**found, "known": known}.items()}
    gap["plug-in"] = np.abs(np.maximum(0, 1 - share / p) - truth)[seen]
    rate_gap = {m: np.abs(e.exclude_rate - p)[seen] for m, e in found.items()}
    return {
        **{f"rate_error {m}": (values / p[seen]).mean() for m, values in rate_gap.items()},
        **{f"prior_error {m}": values.mean() for m, values in gap.items()},
        "inside": (gap[METHODS[0]] <= 2 * default.standard_error[seen]).mean(),
        "standard_error": default.standard_error[seen].mean(),
        "rate_inside": (rate_gap[METHODS[0]] <= 2 * rate_error[seen]).mean(),
    }


def problems() -> Iterator[tuple[str, Any, Any, int]]:
    """Yield the name, the rows, the relevant labels and the number of seeds of every problem."""
    for name in SETS:
        data = load(name)
        yield name, data.X, data.known_relevant(), N_SEEDS
    for name in SMALL_SETS:
        data = load(name)
        few = data.take(np.random.default_rng(FEW).permutation(len(data))[:FEW])
        relevant = few.known_relevant()
        yield f"{name}, {FEW} rows", few.X, relevant[:, relevant.any(axis=0)], N_SMALL_SEEDS


def real() -> list[dict[str, Any]]:
    """Return the errors on real candidates."""
    rows = []
    for name in REAL_SETS:
        data = load(name)
        candidates, truth = data.known_candidates(), count_class_prior(data.known_relevant())
        found = {m: estimate_class_prior(data.X, candidates, m) for m in METHODS}
        errors = {m: np.abs(e.class_prior - truth) for m, e in found.items()}
        inside = errors[METHODS[0]] <= 2 * found[METHODS[0]].standard_error
        means = {f"prior_error {m}": round(float(e.mean()), 4) for m, e in errors.items()}
        rows.append({"data": name, **means, "inside": round(float(inside.mean()), 4)})
        print(rows[-1], flush=True)
    return rows


def main() -> None:
    """Judge the estimators on every data set and rate, and write the means."""
    warnings.simplefilter("ignore", ComesWarning)  # labels that are uncertain, by design
    share_scores()
    rows = []
    for name, X, relevant, n_seeds in problems():
        for rate in RATES:
            runs = [judge(X, relevant, rate, seed) for seed in range(n_seeds)]
            means = {key: round(float(np.mean([run[key] for run in runs])), 4) for key in runs[0]}
            rows.append({"data": name, "exclude_rate": rate, "seeds": n_seeds, **means})
            print(rows[-1], flush=True)
    result = {"command": "python experiments/rates.py", "rows": rows, "real": real()}
    with replacing_file(RESULT) as temporary:
        temporary.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
