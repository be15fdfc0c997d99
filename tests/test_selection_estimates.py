"""Metrics from candidates: the formulas by plain loops, and the truth where everything is known."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import f1_score, precision_score, recall_score, roc_auc_score

from comes.answers import Answers
from comes.errors import ComesError
from comes.generation import case_b
from comes.metrics import hamming_loss
from comes.priors import ClassPriorEstimate
from comes.selection import compare_metrics, estimate_metrics, estimates, likelihood_losses
from comes.selection.estimates import Shares, metrics_by_label, prior_bounds

RNG = np.random.default_rng(0)
PRIOR = np.array([0.2, 0.4, 0.6])


def draw(n: int, rate: float = 0.5, seed: int = 0) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    relevant = rng.random((n, 3)) < PRIOR
    scores = np.round(2 * relevant - 1 + rng.normal(size=(n, 3)), 1)  # rounded: some are tied
    candidates = relevant | (rng.random((n, 3)) >= rate)
    return scores, relevant, candidates


def by_loops(scores: Any, candidates: Any, prior: Any, label: int) -> dict[str, float]:
    """Return the estimates of one label from their definitions."""
    n = len(scores)
    excluded = [i for i in range(n) if not candidates[i][label]]
    predicted = sum(scores[i][label] > 0 for i in range(n)) / n
    rate = sum(scores[i][label] > 0 for i in excluded) / len(excluded)
    wins = 0.0
    for i in excluded:
        for k in range(n):
            wins += float(scores[k][label] > scores[i][label])
            wins += 0.5 * float(scores[k][label] == scores[i][label])
    share = wins / (len(excluded) * n)
    pi = prior[label]
    hits = predicted - (1 - pi) * rate
    return {
        "error": pi - predicted + 2 * (1 - pi) * rate,
        "recall": hits / pi,
        "precision": hits / predicted,
        "f1": 2 * hits / (predicted + pi),
        "auc": (share - (1 - pi) / 2) / pi,
    }


def test_every_label_by_plain_loops() -> None:
    scores, _, candidates = draw(60)
    found = estimate_metrics(scores, candidates, PRIOR, n_resamples=5)
    for label in range(3):
        for name, value in by_loops(scores, candidates, PRIOR, label).items():
            assert found.per_label[name][label] == pytest.approx(value), name
    means = {"hamming_loss": "error", "macro_f1": "f1", "macro_auc": "auc"}
    for name, of in means.items():
        assert found[name].value == pytest.approx(found.per_label[of].mean())
    risk = 0.0
    for j in range(3):
        rows = [i for i in range(60) if not candidates[i][j]]
        for i in rows:
            for k in range(3):
                if k != j:
                    below = scores[i][k] < scores[i][j]
                    tied = scores[i][k] == scores[i][j]
                    risk += (1 - PRIOR[j]) / len(rows) * (below + 0.5 * tied)
    assert found["ranking_risk"].value == pytest.approx(risk)


def test_where_every_irrelevant_label_is_excluded_the_estimates_are_the_truth() -> None:
    scores, relevant, _ = draw(400)
    prior = relevant.mean(axis=0)
    found = estimate_metrics(scores, relevant, prior, n_resamples=5)
    predicted = scores > 0
    assert found["hamming_loss"].value == pytest.approx(hamming_loss(predicted, relevant))
    options: dict[str, Any] = {"average": "macro"}
    assert found["macro_recall"].value == pytest.approx(
        recall_score(relevant, predicted, **options)
    )
    precision = precision_score(relevant, predicted, **options)
    assert found["macro_precision"].value == pytest.approx(precision)
    assert found["macro_f1"].value == pytest.approx(f1_score(relevant, predicted, **options))
    assert found["macro_auc"].value == pytest.approx(roc_auc_score(relevant, scores))


def test_differences_of_the_ranking_risk_are_those_of_the_paper() -> None:
    """Theorem 4: a constant that no model changes lies between it and Equation 3."""
    scores, relevant, _ = draw(300)
    others = scores + RNG.normal(size=scores.shape)

    def equation_3(g: Any) -> float:
        total = 0.0
        for row, y in zip(g, relevant, strict=True):
            for j in range(3):
                for k in range(3):
                    if y[j] and not y[k]:
                        total += float(row[j] < row[k]) + 0.5 * float(row[j] == row[k])
        return total / len(g)

    found = compare_metrics(scores, others, relevant, relevant.mean(axis=0), n_resamples=50)
    truth = equation_3(scores) - equation_3(others)
    assert found["ranking_risk"].value == pytest.approx(truth)
    assert found["ranking_risk"].low < truth < found["ranking_risk"].high


def test_estimates_are_near_the_truth_and_their_intervals_hold_it() -> None:
    """More draws are in tests/system/test_selection_coverage.py."""
    scores, relevant, _ = draw(200_000, seed=9)
    truth = hamming_loss(scores > 0, relevant)
    inside, values = 0, []
    for seed in range(25):
        scores, _, candidates = draw(400, rate=0.3, seed=seed)
        found = estimate_metrics(scores, candidates, PRIOR, n_resamples=100)["hamming_loss"]
        inside += found.low < truth < found.high
        values.append(found.value)
    assert abs(np.mean(values) - truth) < 4 * np.std(values) / 25**0.5
    assert 20 <= inside <= 25


def test_an_uncertain_prior_makes_intervals_wider() -> None:
    scores, relevant, _ = draw(2000)
    candidates = case_b(relevant, exclude_rate=0.9)
    flags = ("ok",) * 3
    unsure = ClassPriorEstimate(PRIOR, PRIOR, PRIOR, PRIOR, np.full(3, 0.04), flags)
    known = estimate_metrics(scores, candidates, PRIOR)
    found = estimate_metrics(scores, candidates, unsure)
    assert "taken as known" in known.prior_error
    assert "standard error" in found.prior_error
    for name, estimate in found.metrics.items():
        assert estimate.labels == known[name].labels == (0, 1, 2)
        assert (estimate.value, estimate.low) == (known[name].value, known[name].low)
        assert known[name].low_with_prior == known[name].low
        assert estimate.high_with_prior - estimate.low_with_prior > estimate.high - estimate.low


def test_a_difference_is_surer_than_its_parts() -> None:
    scores, _, candidates = draw(500, rate=0.2)
    others = scores + 0.1 * RNG.normal(size=scores.shape)
    one = estimate_metrics(scores, candidates, PRIOR)["macro_auc"]
    both = compare_metrics(scores, others, candidates, PRIOR)["macro_auc"]
    assert both.high - both.low < 0.5 * (one.high - one.low)
    same = compare_metrics(scores, scores, candidates, PRIOR)["hamming_loss"]
    assert (same.value, same.low, same.high) == (0, 0, 0)


def test_labels_of_which_nothing_can_be_said_are_left_out() -> None:
    scores, _, candidates = draw(100)
    candidates[:, 1] = True
    found = estimate_metrics(scores, candidates, PRIOR, n_resamples=10)
    assert found.left_out == [1]
    assert np.isnan(found.per_label["error"][1])
    some = found.per_label["error"][[0, 2]].mean()
    assert found["hamming_loss"].value == pytest.approx(some)
    never = estimate_metrics(scores, candidates, [0.2, 0.4, 0.0], n_resamples=10)
    assert np.isnan(never.per_label["recall"][2])  # of nothing
    nothing = estimate_metrics(scores, np.ones((100, 3)), PRIOR, n_resamples=10)
    assert np.isnan(nothing["hamming_loss"].value)
    assert np.isnan(nothing["ranking_risk"].value)
    assert nothing.left_out == [0, 1, 2]


def test_few_exclusions_do_not_bias_the_intervals() -> None:
    """A drawing of rows that misses a label's only exclusions is left out, not counted as 0."""
    values, covered = [], 0
    truth_scores, truth, _ = draw(100_000, seed=5)
    below = np.argsort(np.argsort(truth_scores, axis=1), axis=1)
    truth_risk = (below * ~truth).sum(axis=0) / 1e5  # what every label adds
    for seed in range(25):
        scores, _, candidates = draw(200, rate=0.06, seed=seed)
        found = estimate_metrics(scores, candidates, PRIOR, n_resamples=100)["ranking_risk"]
        if found.labels:
            risk = truth_risk[list(found.labels)].sum()
            values.append(found.value - risk)
            covered += found.low <= risk <= found.high
    assert abs(np.mean(values)) < 0.15
    assert covered > 0.7 * len(values) > 12


def test_one_row_one_label_huge_scores_and_own_predictions() -> None:
    found = estimate_metrics([[1e300]], [[0]], [0.5], n_resamples=0)
    assert found["hamming_loss"].value == pytest.approx(0.5 - 1 + 2 * 0.5)
    scores, _, candidates = draw(50)
    cut = estimate_metrics(scores, candidates, PRIOR, predictions=scores > 1, n_resamples=3)
    shifted = estimate_metrics(scores - 1, candidates, PRIOR, n_resamples=3)
    assert cut["macro_f1"].value == pytest.approx(shifted["macro_f1"].value)
    again = estimate_metrics(scores, candidates, PRIOR, n_resamples=3)
    assert again.per_label.equals(
        estimate_metrics(scores, candidates, PRIOR, n_resamples=3).per_label
    )


def test_many_rows_are_resampled_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    scores, _, candidates = draw(80)
    whole = estimate_metrics(scores, candidates, PRIOR, n_resamples=7)
    monkeypatch.setattr(estimates, "WEIGHTS_AT_ONCE", 160)
    parts = estimate_metrics(scores, candidates, PRIOR, n_resamples=7)
    assert parts.per_label.equals(whole.per_label)


def test_what_does_not_fit_is_refused() -> None:
    scores, _, candidates = draw(5)
    cases: list[tuple[dict[str, Any], str]] = [
        ({"scores": np.zeros((4, 2))}, "scores and candidates must have one shape"),
        ({"class_prior": [0.5]}, "a number for each of 3 labels; got shape"),
        ({"class_prior": [0.5, 30, 0.5]}, r"class_prior must lie in \[0, 1\] for every label"),
        ({"class_prior": [0.5, np.nan, 0.5]}, r"class_prior must lie in \[0, 1\]"),
        ({"scores": np.full((5, 3), np.nan)}, "scores must be finite"),
        ({"class_prior_error": [0.1]}, "class_prior_error must hold a number of at least 0"),
        ({"class_prior_error": [0.1, -1, 0.1]}, "class_prior_error must hold"),
        ({"class_prior_error": [0.1, np.inf, 0.1]}, "class_prior_error must hold"),
        ({"predictions": np.zeros((5, 2))}, "predictions must have the shape of scores"),
        ({"n_resamples": -1}, "n_resamples must be 0 or more; got -1"),
        ({"level": 1.0}, "level must be above 0 and below 1"),
    ]
    for changes, message in cases:
        given = {"scores": scores, "candidates": candidates, "class_prior": PRIOR} | changes
        with pytest.raises(ComesError, match=message):
            estimate_metrics(**given)


def test_a_label_that_few_rows_exclude_is_left_out_of_intervals() -> None:
    scores, _, candidates = draw(40)
    candidates[:, 0] = np.arange(40) > 3  # four rows exclude the first label
    found = estimate_metrics(scores, candidates, PRIOR, n_resamples=50)
    assert found.left_out == [] and found["hamming_loss"].labels == (1, 2)
    assert found["hamming_loss"].value == pytest.approx(found.per_label["error"][[1, 2]].mean())
    assert np.isnan(found.per_label["error_low"][0]) and found.per_label["error"][0] > 0
    whole = estimate_metrics(scores, candidates, PRIOR, n_resamples=0)
    assert whole["hamming_loss"].value == pytest.approx(whole.per_label["error"].mean())


def test_an_interval_holds_its_own_estimate_and_stays_in_the_range() -> None:
    for seed in range(16):
        scores, _, candidates = draw(60, rate=0.3, seed=seed)
        error = np.full(3, 0.02 * (seed % 8))
        found = estimate_metrics(
            scores, candidates, PRIOR, class_prior_error=error, n_resamples=40, seed=seed
        )
        for name, e in found.metrics.items():
            if e.reason is None:
                most = np.inf if name == "ranking_risk" else 1
                assert 0 <= e.low_with_prior <= e.value <= e.high_with_prior <= most
                assert 0 <= e.low <= e.value <= e.high <= most
            else:
                ends = (e.low, e.high, e.low_with_prior, e.high_with_prior)
                assert np.isnan(ends).all()


def test_a_count_of_zero_is_not_certain() -> None:
    _, _, candidates = draw(200)
    scores = np.full((200, 3), -1.0)  # nothing is predicted, so the Hamming loss is the prior
    found = estimate_metrics(scores, candidates, PRIOR)["hamming_loss"]
    assert found.value == pytest.approx(PRIOR.mean())
    assert found.low < found.value < found.high
    truth = Answers(no=candidates, yes=~candidates)
    recall = estimate_metrics(-2 * scores, truth, PRIOR)["macro_recall"]  # everything is predicted
    assert recall.value == recall.high == 1 > recall.low


def test_an_interval_as_wide_as_what_labels_can_add_is_refused() -> None:
    rare = np.random.default_rng(0).random((400, 3)) < 0.02
    scores, candidates = np.where(rare, 1.0, -1.0), case_b(rare, exclude_rate=0.9)
    prior = rare.mean(axis=0)
    found = estimate_metrics(scores, candidates, prior, class_prior_error=np.full(3, 0.06))
    known = estimate_metrics(scores, candidates, prior)
    for name in ("hamming_loss", "ranking_risk"):
        assert known[name].reason is None
        assert "too uncertain: anything from" in str(found[name])


def test_the_rows_bound_the_class_prior() -> None:
    """At the bounds by predictions, by the AUC, by "yes" and by "no", a metric is at its limit."""
    one = np.ones((1, 1))
    shares = dict.fromkeys(Shares._fields, 0.0 * one)
    parts: list[tuple[dict[str, float], tuple[float, float]]] = [
        ({"predicted": 0.6, "false_positives": 0.2, "excluded": 0.3}, (0.5, 0.7)),
        ({"beaten": 0.7}, (0.4, 1.0)),
        ({"beaten": 0.7, "confirmed": 0.45, "predicted": 0.3}, (0.45, 1.0)),
        ({"false_positives": np.nan, "beaten": np.nan}, (0.0, 1.0)),
    ]
    for changes, bounds in parts:
        changed = shares | {name: value * one for name, value in changes.items()}
        assert np.ravel(prior_bounds(Shares(**changed))) == pytest.approx(bounds), changes
    at_least = metrics_by_label(
        Shares(**shares | {"beaten": 0.7 * one, "won": np.nan * one}), np.array([0.4])
    )
    assert at_least["auc"].item() == pytest.approx(1)


def test_priors_that_cannot_be_right_are_told() -> None:
    relevant = np.random.default_rng(0).random((500, 3)) < 0.5
    candidates = case_b(relevant, exclude_rate=0.5)
    scores = np.where(relevant, 1.0, -1.0)
    found = estimate_metrics(scores, candidates, [0.1] * 3)["macro_auc"]
    assert found.reason is not None and "outside its range" in found.reason
    assert "outside" in str(found) and np.isnan(found.low)


def test_scores_that_look_like_probabilities_are_told() -> None:
    scores, _, candidates = draw(50)
    chance, message = 1 / (1 + np.exp(-scores)), "look like probabilities. Pass probabilities=True"
    with pytest.raises(ComesError, match=message):
        estimate_metrics(chance, candidates, PRIOR, n_resamples=0)
    with pytest.raises(ComesError, match=message):
        compare_metrics(scores, chance, candidates, PRIOR, n_resamples=0)
    with pytest.raises(ComesError, match="look like probabilities. Pass their log odds"):
        likelihood_losses(chance, candidates, PRIOR)
    with pytest.raises(ComesError, match=r"must lie in \[0, 1\]; got -"):
        estimate_metrics(scores, candidates, PRIOR, probabilities=True)
    found = estimate_metrics(scores, candidates, PRIOR)
    for given in ({"probabilities": True}, {"predictions": chance > 0.5}):
        again = estimate_metrics(chance, candidates, PRIOR, **given)
        pd.testing.assert_frame_equal(again.per_label, found.per_label)


def test_frames_with_other_rows_or_labels_are_not_paired_by_position() -> None:
    scores, _, candidates = draw(50)
    names = [f"l{j}" for j in range(len(PRIOR))]
    frame, said = (pd.DataFrame(values, columns=names) for values in (scores, candidates))
    estimate_metrics(frame, said, PRIOR, n_resamples=0)
    with pytest.raises(ComesError, match="same labels in the same order"):
        estimate_metrics(frame[names[::-1]], said, PRIOR, n_resamples=0)
    with pytest.raises(ComesError, match="rows in the same order"):
        estimate_metrics(frame.iloc[::-1], said, PRIOR, n_resamples=0)
    with pytest.raises(ComesError, match="different indexes, 50 and 0 at row 0"):
        likelihood_losses(frame.set_axis(range(50, 100)), said, PRIOR)


def test_differences_hold_their_own_estimate_when_priors_are_near_zero() -> None:
    scores, _, candidates = draw(300)
    small = np.array([0.2, 0.001, 0.6])
    flags = ("ok", "few excluded", "ok")
    prior = ClassPriorEstimate(small, small, small, small, np.full(3, 0.2), flags)
    for seed in range(5):
        others = scores + 3 * np.random.default_rng(seed).normal(size=scores.shape)
        for name, gap in compare_metrics(scores, others, candidates, prior, seed=seed).items():
            assert gap.low_with_prior <= gap.value <= gap.high_with_prior, name


def answer(relevant: Any, asked: float = 1.0, sure: float = 1.0, seed: int = 0) -> Answers:
    """Ask about a share of the pairs, and hear a sure answer to a share of the questions."""
    rng = np.random.default_rng([7, seed])  # not the numbers of `draw`
    heard = rng.random(relevant.shape) < asked
    knows = rng.random(relevant.shape) < sure
    masks = (~relevant & knows, relevant & knows, ~knows)
    return Answers(*(mask & heard for mask in masks))


def test_answers_by_plain_loops() -> None:
    scores, relevant, _ = draw(120)
    answers = answer(relevant, asked=0.5, sure=0.7)
    found = estimate_metrics(scores, answers, PRIOR, n_resamples=0).per_label
    for j in range(3):
        no = [i for i in range(120) if answers.excluded[i, j]]
        yes = [i for i in range(120) if answers.confirmed[i, j]]
        hits = sum(scores[i, j] > 0 for i in yes) / len(yes)
        alarms = sum(scores[i, j] > 0 for i in no) / len(no)
        won = 0.0
        for i in yes:
            for k in no:
                won += float(scores[i, j] > scores[k, j]) + 0.5 * float(
                    scores[i, j] == scores[k, j]
                )
        pi = PRIOR[j]
        expected = {
            "error": pi * (1 - hits) + (1 - pi) * alarms,
            "recall": hits,
            "precision": pi * hits / (pi * hits + (1 - pi) * alarms),
            "f1": 2 * pi * hits / (pi * hits + (1 - pi) * alarms + pi),
            "auc": won / (len(yes) * len(no)),
        }
        for name, value in expected.items():
            assert found[name][j] == pytest.approx(value), name


def test_where_everything_is_answered_the_estimates_are_the_truth() -> None:
    scores, relevant, _ = draw(400)
    prior = relevant.mean(axis=0)
    found = estimate_metrics(scores, answer(relevant), prior, n_resamples=0)
    truth = estimate_metrics(scores, relevant, prior, n_resamples=0)
    for name, estimate in found.metrics.items():
        assert estimate.value == pytest.approx(truth[name].value), name


def test_yes_makes_estimates_surer_and_recall_free_of_the_prior() -> None:
    scores, relevant, _ = draw(2000)
    answers = answer(relevant, asked=0.3, sure=0.8)
    error = np.full(3, 0.03)
    given: Any = {"class_prior_error": error, "n_resamples": 100}
    with_yes = estimate_metrics(scores, answers, PRIOR, **given)
    without = estimate_metrics(scores, answers.candidates, PRIOR, **given)
    for name in ("hamming_loss", "macro_recall", "macro_auc"):
        one, other = with_yes[name], without[name]
        width, before = (e.high_with_prior - e.low_with_prior for e in (one, other))
        assert width < 0.7 * before, name
    off = estimate_metrics(scores, answers, PRIOR / 2, class_prior_error=np.full(3, np.nan))
    for name in ("macro_recall", "macro_auc"):
        assert off[name].value == pytest.approx(with_yes[name].value)
        assert off[name].reason is None
    assert off["hamming_loss"].reason is not None


def test_answers_that_a_model_asked_for_do_not_count_and_ticks_tell_the_recall() -> None:
    scores, relevant, _ = draw(300)
    answers = answer(relevant, asked=0.5)
    chosen = np.zeros((300, 3), dtype=bool)
    chosen[:100] = True
    marked = Answers.from_codes(answers.codes, chosen=chosen)
    kept = Answers.from_codes(np.where(chosen, 0, answers.codes))
    for name, value in estimate_metrics(scores, marked, PRIOR, n_resamples=0).metrics.items():
        again = estimate_metrics(scores, kept, PRIOR, n_resamples=0)[name]
        assert value.value == again.value
    ticked = estimate_metrics(scores, Answers.from_positives(relevant), PRIOR, n_resamples=50)
    assert ticked["macro_recall"].labels == (0, 1, 2)
    assert ticked["hamming_loss"].reason is not None


def test_intervals_from_answers_hold_the_truth() -> None:
    inside: dict[str, int] = {}
    for seed in range(20):
        scores, relevant, _ = draw(300, seed=seed)
        answers = answer(relevant, asked=0.5, sure=0.8, seed=seed + 100)
        share = relevant.mean(axis=0)
        found = estimate_metrics(scores, answers, share, n_resamples=100)
        truth = estimate_metrics(scores, relevant, share, n_resamples=0)
        for name, e in found.metrics.items():
            inside[name] = inside.get(name, 0) + (e.low <= truth[name].value <= e.high)
    assert min(inside.values()) >= 17
