"""Numbers by label: what is wrong is told with the name of the label."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from comes import CandidateClassifier
from comes.answers import match_names
from comes.errors import ComesError, ComesWarning
from comes.estimator import per_label


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (pd.Series({"a": 0.1}), "got none for 'b'. Add it."),
        (pd.Series({"a": 0.1, "c": 0.2}), "got none for 'b'. Add it."),
        (pd.Series({"b": 0.1, "a": 2.0}), "got 2.0 for label 'a'. Correct it."),
        (pd.Series({"a": 0.1, "b": "much"}), "got 'much' for label 'b'. Correct it."),
        ([0.1, np.nan], "got nan for label 'b'"),
        ([0.1, 0.2, 0.3], "got 3 numbers"),
        (0.5, "got 0.5"),
        ([0.0, 0.0], "class_prior must be above 0 for some label; got 0 for every one"),
    ],
)
def test_a_bad_prior_names_its_label(values: Any, message: str) -> None:
    with pytest.raises(ComesError, match=message):
        per_label(values, "class_prior", ["a", "b"])


def test_labels_that_do_not_match_are_named() -> None:
    names = [f"label {k}" for k in range(20)]
    with pytest.raises(ComesError, match=r"missing: 'label 19'; not among them: 'other'\)"):
        match_names([*names[:19], "other"], names)


def test_a_prior_of_0_is_told_and_priors_of_0_are_refused() -> None:
    X = np.random.default_rng(0).normal(size=(60, 2))
    candidates = (X > 0) | (np.random.default_rng(1).random(X.shape) < 0.5)
    with pytest.warns(ComesWarning, match="label '1' is 0: it is learned as never relevant"):
        CandidateClassifier("comes-hl", epochs=1, class_prior=[0.5, 0.0]).fit(X, candidates)
    with pytest.raises(ComesError, match="got 0 for every one"):
        CandidateClassifier("comes-hl", epochs=1, class_prior=[0, 0]).fit(X, candidates)
