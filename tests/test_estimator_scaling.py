"""Scaling of features: part of the model, and never of columns that are 0 and 1."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from comes import CandidateClassifier
from comes.estimator.scaling import fit_scaling, is_scaled_for_priors
from refusals import refused

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 4))
CANDIDATES = (X[:, :3] > 0) | (RNG.random((200, 3)) < 0.5)


def test_flags_are_left_as_they_are() -> None:
    flags = RNG.random((200, 3)) < [0.02, 0.5, 0.98]
    for dtype in (bool, np.int64, np.float32, float):
        scaling = fit_scaling(flags.astype(dtype), "auto")
        np.testing.assert_array_equal(scaling(flags.astype(dtype)), flags, err_msg=str(dtype))
        by_all = fit_scaling(flags.astype(dtype), "dense")(flags.astype(dtype))
        np.testing.assert_allclose(by_all.std(axis=0), 1, rtol=1e-5, err_msg=str(dtype))


def test_flags_beside_numbers() -> None:
    """A column that is constant stays as it is too if it is 0 or 1, and becomes 0 otherwise."""
    flag = (np.arange(200) % 5 == 0).astype(float)
    nearly = np.where(np.arange(200) == 3, 0.5, flag)
    columns = [flag, 10 * X[:, 0] + 3, np.zeros(200), np.ones(200), np.full(200, 7.0), nearly]
    data = np.column_stack(columns)
    found = fit_scaling(data, "auto")(data)
    np.testing.assert_array_equal(found[:, [0, 2, 3]], data[:, [0, 2, 3]])
    np.testing.assert_array_equal(found[:, 4], 0)
    standard = fit_scaling(data, "standard")(data)
    np.testing.assert_array_equal(found[:, [1, 5]], standard[:, [1, 5]])
    assert abs(found[:, 1].mean()) < 1e-6 and found[:, 1].std() == pytest.approx(1, rel=1e-5)


def test_features_are_scaled_once_for_training_and_priors_where_that_is_the_same() -> None:
    flags = np.where(np.arange(4) < 1, X > 0, X)
    for data, how, is_same in (
        (X, "auto", True),
        (X, "standard", True),
        (flags, "dense", True),
        (flags, "auto", False),
        (X.astype(np.float32), "auto", False),
        (X, None, False),
        (X, "maxabs", False),
    ):
        assert is_scaled_for_priors(data, how) is is_same, how


def test_a_table_of_flags_is_fitted_as_its_numbers() -> None:
    table = pd.DataFrame(X > 0, columns=["a", "b", "c", "d"])
    fitted, same = (
        CandidateClassifier(class_prior=[0.5] * 3, epochs=1, hidden=8, random_state=0).fit(
            rows, CANDIDATES
        )
        for rows in (table, (X > 0).astype(float))
    )
    assert fitted.scaling_.scale is not None and (fitted.scaling_.scale == 1).all()
    scores = fitted.decision_function(table)
    np.testing.assert_array_equal(scores, same.decision_function(X > 0))


def test_dense_and_automatic_scaling_leave_sparse_rows_alone() -> None:
    for how in ("auto", "dense"):
        scaling = fit_scaling(sparse.csr_array(X), how)
        assert scaling.shift is None and scaling.scale is None
    with refused("'auto', 'dense', 'standard', 'centre', 'maxabs' or None; got 'minmax'"):
        fit_scaling(X, "minmax")
