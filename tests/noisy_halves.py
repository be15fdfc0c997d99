"""A small problem for choosing and judging: each label is the sign of a feature, with noise."""

from typing import Any

import numpy as np

from comes import CandidateClassifier
from comes.generation import case_b

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 4))
RELEVANT = X[:, :3] + 0.3 * RNG.normal(size=(400, 3)) > 0
CANDIDATES = case_b(RELEVANT, exclude_rate=0.5)
PRIOR = RELEVANT.mean(axis=0)


def classifier(method: Any = "comes-hl", **settings: Any) -> CandidateClassifier:
    defaults: dict[str, Any] = {"epochs": 10, "hidden": 8, "class_prior": PRIOR}
    return CandidateClassifier(method, random_state=0, verbose=-1, **defaults | settings)
