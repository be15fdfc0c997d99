"""Which labels a metric is over, its interval, why there is none, and priors that are drawn."""

import re
from typing import Any

import numpy as np
import pytest

from comes.priors import ClassPriorEstimate
from comes.selection.intervals import (
    OVER_LABELS,
    MetricDraws,
    draw_priors,
    interval,
    over_labels,
    prior_error,
)


def drawn(name: str = "macro_recall", **changes: Any) -> MetricDraws:
    """Return four labels at 0.5, in draws with a standard deviation of 0.02."""
    draws = 0.5 + 0.02 * np.random.default_rng(0).normal(size=(200, 4))
    given: dict[str, Any] = {
        "name": name,
        "values": np.full(4, 0.5),
        "known": draws,
        "unsure": draws,
        "n_rows": np.full(4, 50.0),
        "error": np.full(4, 0.01),
        "possible": np.ones(4),
        "level": 0.95,
    }
    return MetricDraws(**given | changes)


def spread(factors: list[float]) -> Any:
    return 0.5 + np.random.default_rng(1).normal(size=(200, 4)) * factors


def in_five_labels(draws: Any) -> dict[str, Any]:
    """Return draws of four labels with a fifth one that is like the first."""
    five = draws[:, [0, 1, 2, 3, 0]]
    return {"known": five, "unsure": five, "possible": np.ones(5)}


def test_a_metric_is_over_the_labels_that_can_be_judged() -> None:
    """The second label is too uncertain, the third flagged, the fourth excluded by few rows."""
    metric = drawn(
        **in_five_labels(spread([0.02, 0.4, 0.02, 0.02])),
        error=np.array([0.1, 0.1, np.nan, 0.1, 0.1]),
        n_rows=np.array([50.0, 50.0, 50.0, 4.0, 50.0]),
        values=np.array([0.6, 0.5, 0.5, 0.5, 0.6]),
    )
    assert metric.causes.tolist() == ["", "unsure", "flagged", "few", ""]
    found = metric.summarise()
    assert (found.labels, found.value, found.reason) == ((0, 4), 0.6, None)
    assert found.low_with_prior < 0.6 <= found.high_with_prior
    undefined = drawn(values=np.array([np.nan, 0.5, 0.5, 0.5]))
    assert undefined.causes[0] == "undefined"


def test_only_ratios_leave_uncertain_labels_out() -> None:
    wide = spread([0.02, 0.4, 0.02, 0.02])
    for name, of in OVER_LABELS.items():
        n_labels = (drawn(name, unsure=wide).causes == "").sum()
        assert n_labels == (4 if of in ("error", "ranking") else 3)


def test_an_interval_that_would_not_be_honest_is_refused() -> None:
    failing = np.where(np.arange(200) < 30, np.nan, 0.5)[:, None].repeat(4, axis=1)
    cases: list[tuple[dict[str, Any], str]] = [
        ({"error": np.full(4, np.nan)}, "its standard error is not known"),
        (
            {"n_rows": np.zeros(4)},
            "only 0 of 4 labels can be judged; most others: fewer than 5",
        ),
        ({"unsure": spread([0.5] * 4)}, "only 0 of 4 labels.*most others: too uncertain"),
        ({"values": np.full(4, 1.01)}, "estimated as 1.01, outside its range"),
        (
            {"name": "hamming_loss", "possible": np.full(4, 0.02)},
            "too uncertain: anything from 0.4",
        ),
        ({"name": "ranking_risk", "possible": np.full(4, 0.01)}, "too uncertain"),
        ({"name": "ranking_risk", "values": np.full(4, -1.0)}, "outside its range"),
        ({"name": "hamming_loss", "unsure": failing}, "30 of 200 resamples"),
    ]
    for changes, reason in cases:
        found = drawn(**changes).summarise()
        assert found.reason is not None, reason
        assert re.search(reason, found.reason)
        ends = [found.low, found.high, found.low_with_prior, found.high_with_prior]
        assert np.isnan(ends).all(), reason
        assert str(found) == f"not known: {found.reason}"


def test_an_interval_at_the_limit_of_what_is_honest_is_given() -> None:
    """Two labels and five rows are enough, and a tenth of the drawings may fail."""
    few = np.where(np.arange(4) < 2, 5.0, 4.0)
    assert drawn(n_rows=few).summarise().labels == (0, 1)
    assert drawn(n_rows=few).summarise().reason is None
    failing = np.where(np.arange(200) < 20, np.nan, 0.5)[:, None].repeat(4, axis=1)
    assert drawn("hamming_loss", unsure=failing).summarise().reason is None


def test_the_only_label_of_several_that_can_be_judged_makes_no_metric() -> None:
    """It may look sure by chance; a metric of one label is over that label."""
    only = np.where(np.arange(4) == 0, 50.0, 4.0)
    reason = drawn(n_rows=only).summarise().reason
    assert reason is not None and reason.startswith("only 1 of 4 labels can be judged")
    draws, one = drawn().unsure[:, :1], np.ones(1)
    single = drawn(
        values=one / 2, known=draws, unsure=draws, n_rows=50 * one, error=one / 100, possible=one
    )
    assert single.summarise().reason is None
    none = np.empty((0, 4))
    assert drawn(n_rows=np.where(only > 4, 5.0, 0.0), known=none, unsure=none).summarise().labels


def test_every_label_that_cannot_be_judged_has_its_reason_in_words() -> None:
    metric = drawn(unsure=spread([0.02, 0.4, 0.02, 0.02]), n_rows=np.array([50.0, 50.0, 4.0, 50.0]))
    judged, unsure, few, _ = metric.explain_labels()
    assert judged == ""
    assert "too uncertain" in unsure and "fewer than 5 informative rows" in few
    beyond = drawn("hamming_loss", values=np.array([1.2, -0.1, 0.0, 1.0])).explain_labels()
    assert ["outside its range" in reason for reason in beyond] == [True, True, False, False]
    assert drawn("ranking_risk", values=np.full(4, 1.2)).explain_labels() == [""] * 4


def test_without_draws_there_is_a_value_and_no_reason() -> None:
    found = drawn(known=np.empty((0, 4)), unsure=np.empty((0, 4))).summarise()
    assert (found.value, found.labels, found.reason) == (0.5, (0, 1, 2, 3), None)
    assert np.isnan(found.low)


def test_ends_are_moved_into_the_range_of_the_metric() -> None:
    found = drawn(values=np.full(4, 0.99), unsure=spread([0.05] * 4) + 0.49).summarise()
    assert found.low_with_prior < 0.99 <= found.high_with_prior <= 1


def test_the_ranking_risk_is_a_sum_and_others_are_means() -> None:
    values, labels = np.array([[1.0, 2.0, 9.0], [1.0, np.nan, 9.0]]), np.array([True, True, False])
    np.testing.assert_array_equal(over_labels("macro_f1", values, labels), [1.5, 1.0])
    np.testing.assert_array_equal(over_labels("ranking_risk", values, labels), [3.0, np.nan])
    assert np.isnan(over_labels("macro_f1", values, np.zeros(3, dtype=bool))).all()


def test_an_interval_has_the_quantiles_of_the_draws_and_the_value() -> None:
    draws = np.arange(101.0)[:, None] * [1.0, np.nan]
    low, high = interval(draws, np.array([50.0, 1.0]), 0.9)
    np.testing.assert_allclose(low, [5, np.nan])
    np.testing.assert_allclose(high, [95, np.nan])
    low, high = interval(draws[:, 0], np.float64(99), 0.9)
    assert float(low) == pytest.approx(5) and float(high) == 99
    assert float(interval(draws[:, 0], np.float64(-1), 0.9)[0]) == -1


# Class priors drawn with their standard error

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
