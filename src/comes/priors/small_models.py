"""Small models that predict candidates, trained before the main model."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from scipy import sparse
from sklearn.model_selection import KFold
from sklearn.preprocessing import MaxAbsScaler, StandardScaler
from sklearn.utils import check_array

from comes.answers.convert import BoolMatrix
from comes.columns import encode_table
from comes.errors import ComesError
from comes.models import linear, mlp
from comes.risks import BceRisk
from comes.training import TrainOptions, make_optimizer, predict_scores, train
from comes.training.gradients import Risk
from comes.training.rows import to_device
from comes.training.seeding import seeded

States = npt.NDArray[np.int8]  # of `comes.answers.State`

N_FOLDS = 3
HIDDEN = 128
BATCH_SIZE, MIN_STEPS, MIN_EPOCHS = 256, 300, 20


def check_rows(X: Any, candidates: BoolMatrix) -> Any:
    """Return X as a finite matrix with a row for each row of candidates, else raise an error."""
    X = encode_table(X)
    try:
        X = check_array(X, accept_sparse="csr", dtype=np.float64)
    except ValueError as error:
        raise ComesError(f"{str(error).splitlines()[0]} X must be a finite matrix.") from error
    if X.shape[0] != len(candidates):
        raise ComesError(
            f"X and candidates must have the same rows; got {X.shape[0]} and {len(candidates)}."
        )
    return X


def score_out_of_fold(
    X: Any, candidates: BoolMatrix | States, seed: int, *, is_scaled: bool = False
) -> npt.NDArray[np.float32]:
    """Return scores of candidates by models that were not trained on the row, (n, q).

    They are means of a linear model and a small network, each trained on all labels at once. Of
    states instead of candidates, YES is scored against NO.
    """
    X = X if is_scaled else scale_features(X)
    scores = np.zeros(candidates.shape, dtype=np.float32)
    scale = float(candidates.shape[1])  # a sum over labels
    for seen, unseen in KFold(N_FOLDS, shuffle=True, random_state=seed).split(candidates):
        for hidden in (None, HIDDEN):
            model = fit_small_model(
                X[seen], candidates[seen], BceRisk(), seed, risk_scale=scale, hidden=hidden
            )
            scores[unseen] += score_rows(model, X[unseen]) / 2
    return scores


def scale_features(X: Any) -> Any:
    """Return X with features on a common scale; zeros of a sparse matrix stay zeros."""
    return (MaxAbsScaler() if sparse.issparse(X) else StandardScaler()).fit_transform(X)


def fit_small_model(
    X: Any,
    candidates: BoolMatrix | States,
    risk: Risk,
    seed: int,
    risk_scale: float = 1.0,
    hidden: int | None = None,
) -> torch.nn.Module:
    """Return a linear model, or a network with hidden units, trained for a few hundred steps."""
    device = torch.device("cpu")
    d, q = X.shape[1], candidates.shape[1]
    with seeded(seed, device):
        model = linear(d, q) if hidden is None else mlp(d, q, hidden)
    train(
        model,
        to_device(X, device),
        torch.tensor(candidates),
        risk,
        TrainOptions(
            make_optimizer("adam", learning_rate=0.01 if hidden is None else 0.001),
            epochs=max(MIN_EPOCHS, math.ceil(MIN_STEPS / math.ceil(len(candidates) / BATCH_SIZE))),
            batch_size=BATCH_SIZE,
            risk_scale=risk_scale,
            seed=seed,
            progress=False,
            return_on_interrupt=False,
        ),
    )
    return model


def score_rows(model: torch.nn.Module, X: Any) -> npt.NDArray[np.float32]:
    """Return the scores of a model from `fit_small_model`, (n, q)."""
    scores = predict_scores(model, to_device(X, torch.device("cpu")))
    return np.asarray(scores.numpy())
