"""What is measured of each label: against plain loops, and intervals that hold what they should."""

import numpy as np
import pytest
from sklearn.metrics import (
    average_precision_score,
    f1_score,
    precision_score,
    recall_score,
    roc_auc_score,
)

from comes.errors import ComesError
from comes.label_metrics import (
    LABEL_METRICS,
    bound_share,
    explain_missing,
    list_qualities,
    measure_labels,
)

RNG = np.random.default_rng(0)
RELEVANT = RNG.random((300, 4)) < np.array([0.5, 0.2, 0.05, 0.8])
SCORES = RELEVANT + RNG.normal(size=RELEVANT.shape) - 0.4
PREDICTED = SCORES > 0.1


def test_values_are_those_of_scikit_learn() -> None:
    table = measure_labels(SCORES, RELEVANT, PREDICTED)
    by_cut = {"precision": precision_score, "recall": recall_score, "f1": f1_score}
    by_score = {"auc": roc_auc_score, "average_precision": average_precision_score}
    for label in range(4):
        truth = RELEVANT[:, label]
        for name, score in by_cut.items():
            assert table[name][label] == pytest.approx(score(truth, PREDICTED[:, label]))
        for name, score in by_score.items():
            assert table[name][label] == pytest.approx(score(truth, SCORES[:, label]))
    assert table["n_relevant"].tolist() == RELEVANT.sum(axis=0).tolist()
    assert table["n_predicted"].tolist() == PREDICTED.sum(axis=0).tolist()


def test_intervals_hold_their_estimate_and_are_never_of_width_0() -> None:
    perfect = np.array([[1.0], [2.0], [-1.0], [-2.0]])
    for scores, relevant in ((SCORES, RELEVANT), (perfect, perfect > 0), (-perfect, perfect > 0)):
        table = measure_labels(scores, relevant)
        for name in LABEL_METRICS:
            known = table[table[f"{name}_reason"] == ""]
            assert len(known)
            assert (known[f"{name}_low"] <= known[name]).all()
            assert (known[name] <= known[f"{name}_high"]).all()
            assert (known[f"{name}_high"] - known[f"{name}_low"] > 0.01).all()
            assert known[f"{name}_low"].min() >= 0 and known[f"{name}_high"].max() <= 1


def test_intervals_hold_the_value_of_many_rows_in_95_of_100_draws() -> None:
    rng = np.random.default_rng(1)

    def draw(n: int, q: int) -> tuple[np.ndarray, np.ndarray]:
        relevant = rng.random((n, q)) < 0.3
        return 1.2 * relevant + rng.normal(size=(n, q)) - 0.8, relevant

    aim = measure_labels(*draw(100_000, 1)).iloc[0]
    draws = measure_labels(*draw(120, 300))  # 300 labels of one kind
    for name in LABEL_METRICS:
        held = draws[f"{name}_low"].le(aim[name]) & draws[f"{name}_high"].ge(aim[name])
        assert 0.91 <= held.mean() <= 0.995, name  # the standard error of .95 is .013


def test_what_cannot_be_estimated_says_why() -> None:
    relevant = np.array([[0, 1, 0], [0, 1, 1]], dtype=bool)
    table = measure_labels([[1.0, 1.0, -1.0], [-1.0, 1.0, -1.0]], relevant)
    assert table["recall_reason"].tolist() == ["no row has the label", "", ""]
    assert table["precision_reason"].tolist() == ["", "", "the label is never predicted"]
    assert table["auc_reason"].tolist() == ["no row has the label", "every row has the label", ""]
    for name in LABEL_METRICS:
        unknown = table[f"{name}_reason"] != ""
        for column in (name, f"{name}_low", f"{name}_high"):
            assert (table[column].isna() == unknown).all(), column


def test_wilson_solves_its_equation() -> None:
    shares = bound_share([3.0, 0.0], [20.0, 7.0])
    for end in (shares.low[0], shares.high[0], shares.high[1]):
        k, n = (3, 20) if end != shares.high[1] else (0, 7)
        assert (k / n - end) ** 2 == pytest.approx(1.959964**2 * end * (1 - end) / n, rel=1e-5)


def test_the_interval_of_an_area_solves_newcombes_equation() -> None:
    table = measure_labels(SCORES, RELEVANT, level=0.9)
    n = len(RELEVANT)
    for label in range(4):
        row = table.iloc[label]
        m, others = RELEVANT[:, label].sum(), n / 2 - 1
        for t in (row["auc_low"], row["auc_high"]):
            spread = 1 + others * (1 - t) / (2 - t) + others * t / (1 + t)
            variance = t * (1 - t) * spread / (m * (n - m))
            assert (row["auc"] - t) ** 2 == pytest.approx(1.644854**2 * variance, rel=1e-4), label


def test_labels_are_listed_the_worst_first_with_what_is_not_known() -> None:
    scores = np.array([[1.0, 1.0, -1.0, -1.0], [1.0, -1.0, -1.0, -1.0]])
    relevant = np.array([[1, 1, 0, 1], [1, 1, 0, 0]])
    table = measure_labels(scores, relevant)
    counts = {"n_relevant": "relevant"}
    found = list_qualities(table, ["sky", "sea", "ice", "sun"], counts)
    assert [quality.label for quality in found] == ["sun", "sea", "sky", "ice"]
    assert [quality.counts["relevant"] for quality in found] == [1, 2, 2, 0]
    recall = found[1].metrics["recall"]
    assert recall.value == 0.5 and recall.low == pytest.approx(table["recall_low"][1])
    assert found[1].as_dict()["recall"]["high"] == pytest.approx(table["recall_high"][1])
    assert explain_missing(found)[:2] == [
        "The precision of 'sun', 'ice' cannot be estimated: the label is never predicted.",
        "The AUC of 'sea', 'sky' cannot be estimated: every row has the label.",
    ]


def test_estimates_that_reach_beyond_their_range_are_cut_and_may_lack_an_interval() -> None:
    table = measure_labels(SCORES, RELEVANT)
    table.loc[0, ["recall_low", "recall_high"]] = -0.2, 1.3
    table.loc[1, "recall_high"] = np.nan
    found = {quality.label: quality for quality in list_qualities(table, list("abcd"), {})}
    cut, bare = found["a"].metrics["recall"], found["b"].metrics["recall"]
    assert (cut.low, cut.high) == (0, 1)
    assert (bare.value, bare.low, bare.high) == (table["recall"][1], None, None)


def test_levels_outside_their_range_are_refused() -> None:
    for level in (0.0, 1.0, 95):
        with pytest.raises(ComesError, match=f"above 0 and below 1, such as 0.95; got {level}"):
            bound_share([1], [2], level)
    assert np.isnan(bound_share([0], [0]).value).all()


def test_other_shapes_are_refused() -> None:
    with pytest.raises(ComesError, match=r"shape of the relevant labels, \(300, 4\)"):
        measure_labels(SCORES[:, :2], RELEVANT)
