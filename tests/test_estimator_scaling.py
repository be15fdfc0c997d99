"""Scaling of features: part of the model, and never of columns that are 0 and 1."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from comes import CandidateClassifier
from comes.estimator.scaling import fit_scaling
from refusals import refused

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 4))
CANDIDATES = (X[:, :3] > 0) | (RNG.random((200, 3)) < 0.5)


def test_flags_are_left_as_they_are() -> None:
    flags = RNG.random((200, 3)) < [0.02, 0.5, 0.98]
    for dtype in (bool, np.int64, np.float32, float):
        scaling = fit_scaling(flags.astype(dtype), "columns")
        np.testing.assert_array_equal(scaling(flags.astype(dtype)), flags, err_msg=str(dtype))
        by_all = fit_scaling(flags.astype(dtype), "dense")(flags.astype(dtype))
        np.testing.assert_allclose(by_all.std(axis=0), 1, rtol=1e-5, err_msg=str(dtype))


def test_flags_beside_numbers() -> None:
    """A column that is constant stays as it is too if it is 0 or 1, and becomes 0 otherwise."""
    flag = (np.arange(200) % 5 == 0).astype(float)
    nearly = np.where(np.arange(200) == 3, 0.5, flag)
    columns = [flag, 10 * X[:, 0] + 3, np.zeros(200), np.ones(200), np.full(200, 7.0), nearly]
    data = np.column_stack(columns)
    found = fit_scaling(data, "columns")(data)
    np.testing.assert_array_equal(found[:, [0, 2, 3]], data[:, [0, 2, 3]])
    np.testing.assert_array_equal(found[:, 4], 0)
    standard = fit_scaling(data, "standard")(data)
    np.testing.assert_array_equal(found[:, [1, 5]], standard[:, [1, 5]])
    assert abs(found[:, 1].mean()) < 1e-6 and found[:, 1].std() == pytest.approx(1, rel=1e-5)


def length_of(rows: Any) -> float:
    """Return the root mean square length of rows."""
    rows = rows.toarray() if sparse.issparse(rows) else np.asarray(rows)
    return float(np.sqrt(np.square(rows, dtype=np.float64).sum(axis=1).mean()))


def test_short_rows_are_as_long_as_standardised_columns_or_ten() -> None:
    words = RNG.random((300, 400)) * (RNG.random((300, 400)) < 0.02)
    for d, least in ((400, 10.0), (49, 7.0)):
        short = words[:, :d]
        assert 0 < length_of(short) < 5
        scaling = fit_scaling(sparse.csr_array(short), "rows")
        found = scaling(sparse.csr_array(short)).toarray()
        assert length_of(found) == pytest.approx(least, rel=1e-5) and scaling.shift is None
        ratios = found[short > 0] / short[short > 0]  # one number for the whole matrix
        np.testing.assert_allclose(ratios, ratios[0], rtol=1e-5)
        flags = (short > 0).astype(float)
        assert length_of(fit_scaling(flags, "rows")(flags)) == pytest.approx(least, rel=1e-5)
        long = fit_scaling(sparse.csr_array(100 * short), "rows")  # stays as it is
        assert long.scale is not None and (long.scale == 1).all()
    many = sparse.vstack([sparse.csr_array(0.1 * words)] * 20)  # 6000 rows
    assert length_of(fit_scaling(many, "rows")(many)) == pytest.approx(10 / 6**0.5, rel=1e-5)
    for numbers in (X, RNG.normal(size=(200, 150))):
        found, same = (fit_scaling(numbers, how)(numbers) for how in ("rows", "columns"))
        np.testing.assert_allclose(found, same, rtol=1e-6)
    for nothing in (np.zeros((5, 3)), sparse.csr_array((5, 3))):
        assert length_of(fit_scaling(nothing, "rows")(nothing)) == 0


def test_a_table_of_flags_is_fitted_as_its_numbers() -> None:
    table = pd.DataFrame(X > 0, columns=["a", "b", "c", "d"])
    fitted, same = (
        CandidateClassifier(class_prior=[0.5] * 3, epochs=1, hidden=8, random_state=0).fit(
            rows, CANDIDATES
        )
        for rows in (table, (X > 0).astype(float))
    )
    assert fitted.scaling_.scale is not None and np.ptp(fitted.scaling_.scale) == 0
    scores = fitted.decision_function(table)
    np.testing.assert_array_equal(scores, same.decision_function(X > 0))


def test_dense_and_automatic_scaling_leave_sparse_rows_alone() -> None:
    for how in ("columns", "dense"):
        scaling = fit_scaling(sparse.csr_array(X), how)
        assert scaling.shift is None and scaling.scale is None
    with refused(
        "'rows', 'columns', 'dense', 'standard', 'centre', 'maxabs' or None; got 'minmax'"
    ):
        fit_scaling(X, "minmax")
