"""Metrics, estimates, priors and thresholds in Python: numbers that are not what they should be."""

from collections.abc import Callable

import numpy as np
import pandas as pd

from comes.label_metrics import bound_share, measure_labels
from comes.metrics import (
    average_precision,
    coverage,
    evaluate,
    hamming_loss,
    mean_average_precision,
    one_error,
    ranking_loss,
)
from comes.priors import (
    count_class_prior,
    estimate_answer_rates,
    estimate_class_prior,
    estimate_flip_rate,
)
from comes.priors.clean_sample import count_answer_rates, update_prior
from comes.selection import (
    candidate_scorer,
    check_constant_rate,
    check_ranking_risk,
    choose_thresholds,
    compare_metrics,
    estimate_metrics,
    fit_calibration,
    likelihood_losses,
)
from comes.selection.thresholds import cut_by_row, offset_matching_prior
from hostile.casework import CASES, Case, Place, handled, said
from hostile.materials import answers, candidates, features, fitted, frame, relevant

AREA = "metrics, selection and priors in Python"
PRIOR = np.array([0.6, 0.4, 0.4, 0.3])


def _scores() -> np.ndarray:
    return np.asarray(fitted().decision_function(frame()))


def _shares() -> np.ndarray:
    return np.asarray(fitted().predict_proba(frame()))


CALLS: dict[str, tuple[Callable[[], object], str]] = {
    # metrics
    "scores of fewer rows": (lambda: ranking_loss(_scores()[1:], relevant()), r"shape|row"),
    "scores of fewer labels": (
        lambda: average_precision(_scores()[:, 1:], relevant()),
        r"shape|label",
    ),
    "scores that are no numbers": (
        lambda: one_error(_scores() * np.nan, relevant()),
        r"finite|NaN|nan",
    ),
    "scores that are words": (lambda: coverage([["a", "b"]], [[1, 0]]), r"number|score"),
    "a vector of scores": (
        lambda: ranking_loss(_scores()[:, 0], relevant()[:, 0]),
        r"matrix|shape|dim|label",
    ),
    "no rows to judge": (lambda: average_precision(_scores()[:0], relevant()[:0]), r"row"),
    "truth that is a share": (lambda: ranking_loss(_scores(), relevant() * 0.5), r"0 or 1|0\.5"),
    "a convention that does not exist": (
        lambda: ranking_loss(_scores(), relevant(), "mulan"),
        r"convention|pml",
    ),
    "predictions that are scores": (lambda: hamming_loss(_scores(), relevant()), r"0 or 1"),
    "truth with an nan": (
        lambda: evaluate(_scores(), np.where(relevant(), 1.0, np.nan)),
        r"0 or 1|nan",
    ),
    "a metric of scores of other shape": (
        lambda: mean_average_precision(_scores().T, relevant()),
        r"shape|row",
    ),
    "a level of 95": (lambda: bound_share([1], [3], level=95), r"level"),
    "labels measured without predictions": (
        lambda: measure_labels(_scores(), relevant()[:, :2], relevant()),
        r"shape|label",
    ),
    # selection
    "probabilities where scores are wanted": (
        lambda: estimate_metrics(_shares(), candidates(), PRIOR),
        r"probabilit",
    ),
    "scores where probabilities are wanted": (
        lambda: estimate_metrics(_scores() * 9, candidates(), PRIOR, probabilities=True),
        r"probabilit|\[0, 1\]",
    ),
    "priors of 23": (
        lambda: estimate_metrics(_scores(), candidates(), PRIOR * 60),
        r"prior.*\[0, 1\]|prior",
    ),
    "priors of three labels": (
        lambda: estimate_metrics(_scores(), candidates(), PRIOR[:3]),
        r"prior",
    ),
    "a level of two": (lambda: estimate_metrics(_scores(), candidates(), PRIOR, level=2), r"level"),
    "resamples below zero": (
        lambda: estimate_metrics(_scores(), candidates(), PRIOR, n_resamples=-5),
        r"n_resamples",
    ),
    "infinite scores": (
        lambda: estimate_metrics(_scores() * np.inf, candidates(), PRIOR),
        r"finite|inf",
    ),
    "predictions of another shape": (
        lambda: estimate_metrics(_scores(), candidates(), PRIOR, predictions=relevant()[:, :2]),
        r"predictions|shape",
    ),
    "frames with other rows": (
        lambda: estimate_metrics(
            pd.DataFrame(_scores()), pd.DataFrame(candidates(), index=range(9, 69)), PRIOR
        ),
        r"index|row",
    ),
    "a comparison of other rows": (
        lambda: compare_metrics(_scores(), _scores()[1:], candidates(), PRIOR),
        r"shape|row",
    ),
    "a criterion that does not exist": (lambda: candidate_scorer("f1"), r"hamming|ranking"),
    "thresholds by what does not exist": (
        lambda: choose_thresholds(_scores(), candidates(), PRIOR, by="best"),
        r"risk|f1",
    ),
    "thresholds for a prior of two": (
        lambda: choose_thresholds(_scores(), candidates(), PRIOR + 2),
        r"prior",
    ),
    "an offset for a prior above one": (
        lambda: offset_matching_prior(_scores(), PRIOR + 1),
        r"prior",
    ),
    "an offset for nans": (
        lambda: offset_matching_prior(_scores() * np.nan, PRIOR),
        r"finite|nan|NaN",
    ),
    "rows cut with nans": (lambda: cut_by_row(_scores() * np.nan), r"finite|nan|NaN|probabilit"),
    "a calibration of another shape": (
        lambda: fit_calibration(_scores(), _scores()[:, :2]),
        r"shape|label",
    ),
    "losses of fewer labels": (
        lambda: likelihood_losses(_scores()[:, :2], candidates(), PRIOR),
        r"shape|label",
    ),
    "a check of a mark that no candidate has": (
        lambda: check_constant_rate(features(), candidates(), relevant()[:, :2]),
        r"shape|label",
    ),
    "a check of irrelevant labels that are relevant": (
        lambda: check_constant_rate(features()[:3], candidates(), ~relevant()),
        r"row|shape",
    ),
    "a floor of nans": (
        lambda: check_ranking_risk(_scores() * np.nan, candidates(), PRIOR),
        r"finite|nan|NaN",
    ),
    # priors
    "priors from fewer rows": (lambda: estimate_class_prior(features()[1:], candidates()), r"row"),
    "priors from nans": (
        lambda: estimate_class_prior(features() * np.nan, candidates()),
        r"NaN|finite",
    ),
    "priors by a way that does not exist": (
        lambda: estimate_class_prior(features(), candidates(), "magic"),
        r"bbe|hierarchical",
    ),
    "priors at a rate of zero": (
        lambda: estimate_class_prior(features(), candidates(), exclude_rate=0.0),
        r"exclude_rate",
    ),
    "priors of words": (
        lambda: estimate_class_prior([["a"]] * 60, candidates()),
        r"number|float|text",
    ),
    "a rate of answers for candidates": (
        lambda: estimate_answer_rates(features(), candidates()),
        r"Answers|answers",
    ),
    "rates of answers about fewer rows": (
        lambda: estimate_answer_rates(features()[1:], answers()),
        r"row",
    ),
    "a prior of no rows": (lambda: count_class_prior(relevant()[:0]), r"row"),
    "a prior counted from scores": (lambda: count_class_prior(_scores()), r"0 or 1"),
    "rates counted by other truth": (
        lambda: count_answer_rates(answers(), relevant()[:, :2]),
        r"shape|label",
    ),
    "flip rates with anchors of all": (
        lambda: estimate_flip_rate(features(), candidates(), anchor_share=2.0),
        r"anchor_share",
    ),
    "a prior sharpened by errors below zero": (
        lambda: update_prior(PRIOR, -PRIOR, relevant()),
        r"error",
    ),
}
for _name, (_call, _words) in CALLS.items():
    CASES.append(Case(AREA, _name, lambda _, call=_call: call(), "refused", _words))


@handled(AREA)
def _intervals_contain_their_estimate(_: Place) -> object:
    found = estimate_metrics(_scores(), candidates(), PRIOR, seed=0).metrics.values()
    return all(e.reason is not None or e.low <= e.value <= e.high for e in found)


@handled(AREA)
def _a_metric_that_cannot_be_has_a_reason(_: Place) -> object:
    tiny = np.full(4, 1e-6)  # candidates say otherwise
    found = estimate_metrics(_scores(), candidates(), tiny, seed=0).metrics.values()
    return all(e.reason is not None or (0 <= e.value <= 1 or np.isfinite(e.value)) for e in found)


@handled(AREA)
def _priors_of_nothing_estimate_nothing(_: Place) -> object:
    found = estimate_metrics(_scores(), candidates(), np.zeros(4), seed=0)
    return all(e.reason or 0 <= e.value <= 1 for n, e in found.metrics.items() if n != "ranking")


@handled(AREA)
def _ties_everywhere(_: Place) -> object:
    return ranking_loss(np.zeros((60, 4)), relevant()) == 0.5


@handled(AREA)
def _a_label_that_is_never_relevant(_: Place) -> object:
    truth = relevant().copy()
    truth[:, 1] = False
    without = np.delete(np.arange(4), 1)
    expected = mean_average_precision(_scores()[:, without], truth[:, without])
    return bool(np.isclose(mean_average_precision(_scores(), truth), expected))


@said(AREA, r"few|uncertain|exclude")
def _priors_where_nothing_is_excluded(_: Place) -> object:
    found = estimate_class_prior(features(), np.ones_like(candidates()))
    return " ".join(found.flags)
