"""Whether metrics estimated from candidates rank 36 models as the true metrics do.

    python experiments/agreement.py

writes ``experiments/results/agreement.json``: rank correlations on four data sets, with candidates
of case b at two rates and true class priors. The models are those of ``selection.py``, cross-fitted
over the training rows and judged there on candidates, then fitted on all training rows and judged
on true labels of test rows. The offset of the scores is subtracted, and they are cut by the prior.
"""

import itertools
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
from joblib import Parallel, delayed
from scipy.stats import spearmanr
from selection import GRID, make_classifier
from sklearn.model_selection import train_test_split

from comes.datasets import open_dataset
from comes.errors import ComesWarning
from comes.estimator import cross_fit, fit_together
from comes.files import replacing_file
from comes.generation import case_b
from comes.priors import count_class_prior
from comes.selection import choose_thresholds, estimate_metrics

RESULT = Path(__file__).parent / "results" / "agreement.json"
METRICS = ("hamming_loss", "macro_f1", "macro_auc")


def run(name: str, rate: float) -> dict[str, Any]:
    """Return the rank correlations on one data set."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", ComesWarning)
    dataset = open_dataset(name)
    X = dataset.X.to_numpy(dtype=float) if hasattr(dataset.X, "to_numpy") else dataset.X
    relevant = dataset.known_relevant()
    rows, test = train_test_split(np.arange(len(relevant)), test_size=0.3, random_state=0)
    candidates = case_b(relevant[rows], rate, seed=0)
    prior, truth = count_class_prior(relevant[rows]), relevant[test]
    classifiers = [make_classifier(*model, prior, 0) for model in GRID]
    crossed = cross_fit(classifiers, X[rows], candidates, n_jobs=1)
    everything = [np.arange(len(rows))] * len(GRID)
    fitted = fit_together(classifiers, X[rows], candidates, everything, n_jobs=1)
    found: dict[str, tuple[list[float], list[float]]] = {metric: ([], []) for metric in METRICS}
    for (scores, level), classifier in zip(crossed, fitted, strict=True):
        above = scores - level
        cut = choose_thresholds(above, candidates, prior, "prior")
        estimated = estimate_metrics(
            above, candidates, prior, predictions=above > cut, n_resamples=0
        )
        new = classifier.decision_function(X[test]) - classifier.score_offset_
        share = truth.mean(axis=0)  # with the truth as candidates, the estimate is the metric
        true = estimate_metrics(new, truth, share, predictions=new > cut, n_resamples=0)
        for metric, (estimates, values) in found.items():
            estimates.append(estimated[metric].value)
            values.append(true[metric].value)
    agreement = {metric: float(spearmanr(*pair).statistic) for metric, pair in found.items()}
    rounded = {metric: round(value, 3) for metric, value in agreement.items()}
    return {"data": name, "rate": rate, "correlations": rounded}


def main() -> None:
    """Run all and write the result."""
    cases = list(itertools.product(("enron", "yeast", "scene", "emotions"), (0.1, 0.5)))
    results = Parallel(n_jobs=2)(delayed(run)(*case) for case in cases)
    with replacing_file(RESULT) as temporary:
        temporary.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
