"""The state of a long training of rows on disk, and what it belongs to."""

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from torch import nn

from comes.estimator.features import weights_hash
from comes.estimator.preparation import Training
from comes.estimator.storage import plain
from comes.training.checkpoint import Checkpoint

if TYPE_CHECKING:
    from comes.estimator.classifier import CandidateClassifier

# Settings that a checkpoint may differ in: they change nothing, act later, or are hashed otherwise.
UNDECIDED = {"device", "progress", "verbose", "callbacks", "random_state", "threshold", "output"}
UNDECIDED |= {"encoder", "warm_start", "require_candidates"}


def keep_state(
    classifier: "CandidateClassifier",
    training: Training,
    start: nn.Module | None,
    path: str | Path | None,
    every: float,
) -> Training:
    """Return the training with a checkpoint, named by a hash of settings, data and first weights.

    What is estimated is not hashed, as its last digits depend on the number of threads. The state
    is kept when so many seconds have passed, and not after every epoch, which may be short.
    ``start`` is the network of an earlier fit, if training goes on from there.
    """
    if path is None:
        return training
    begun = start or classifier.model
    network = weights_hash(begun) if isinstance(begun, nn.Module) else repr(training.module)
    given = describe_settings(classifier), network, training.options.seed
    digest = hashlib.sha256(json.dumps(given, sort_keys=True).encode())
    X, answers = training.raw
    weight = [] if training.weight is None else [training.weight.cpu().numpy()]
    arrays = (X.data, X.indices, X.indptr) if sparse.issparse(X) else (X,)
    said = answers.states
    for array in (*arrays, said.data, said.indices, said.indptr, *weight):
        digest.update(np.ascontiguousarray(array).data)
    checkpoint = Checkpoint(Path(path), digest.hexdigest(), every, at_ends=False)
    return replace(training, checkpoint=checkpoint)


def describe_settings(classifier: "CandidateClassifier") -> dict[str, Any]:
    """Return the settings that decide a training, by name."""
    settings = classifier.get_params(deep=False).items()
    return {name: plain(value) for name, value in settings if name not in UNDECIDED}
