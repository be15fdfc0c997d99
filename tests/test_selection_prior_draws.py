"""Class priors drawn with their standard error."""

import numpy as np

from comes.priors import ClassPriorEstimate
from comes.selection import prior_error
from comes.selection.prior_draws import draw_priors

PRIOR = np.array([0.3, 0.5])
WIDE = np.zeros(2), np.ones(2)


def test_draws_have_the_standard_error_and_move_together() -> None:
    drawn = draw_priors(PRIOR, np.array([0.01, 0.02]), WIDE, 4000, seed=0)
    np.testing.assert_allclose(drawn.mean(axis=0), PRIOR, atol=0.002)
    np.testing.assert_allclose(drawn.std(axis=0), [0.01, 0.02], rtol=0.05)
    assert np.asarray(np.corrcoef(drawn.T))[0, 1] > 0.999
    np.testing.assert_array_equal(
        drawn, draw_priors(PRIOR, np.array([0.01, 0.02]), WIDE, 4000, seed=0)
    )


def test_draws_stay_within_what_rows_allow_and_off_zero() -> None:
    bounds = np.array([0.28, 0.0]), np.array([0.35, 0.52])
    drawn = draw_priors(PRIOR, np.full(2, 0.5), bounds, 500, seed=0)
    np.testing.assert_allclose(drawn.min(axis=0), [0.28, 0.125])
    np.testing.assert_allclose(drawn.max(axis=0), [0.35, 0.52])
    crossed = np.array([0.4, 0.0]), np.array([0.9, 0.4])  # the estimates lie outside
    drawn = draw_priors(PRIOR, np.full(2, 0.5), crossed, 500, seed=0)
    np.testing.assert_allclose(drawn.min(axis=0)[0], 0.3)
    np.testing.assert_allclose(drawn.max(axis=0)[1], 0.5)


def test_the_error_of_flagged_labels_is_not_known() -> None:
    flags = ("ok", "never excluded", "always excluded", "uncertain", "rate too low")
    five = np.full(5, 0.2)
    found = prior_error(ClassPriorEstimate(five, five, five, five, five / 10, flags))
    np.testing.assert_array_equal(found, [0.02, np.nan, 0.02, 0.02, np.nan])
    assert prior_error(five) is None
