"""Features and answers made from DataFrames are paired only if their rows are the same."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from comes import Answers, CandidateClassifier
from comes.datasets import Dataset
from comes.errors import ComesError
from comes.estimator import choose_classifier, cross_fit, fit_together
from comes.priors import estimate_answer_rates, estimate_class_prior
from comes.selection import candidate_scorer, estimate_metrics

N = 60
RNG = np.random.default_rng(0)
ROWS = [f"row {number}" for number in RNG.permutation(N)]
X = pd.DataFrame(RNG.normal(size=(N, 3)), columns=list("uvw"), index=ROWS)
RELEVANT = X[["u", "v"]].gt(0).set_axis(["sea", "sky"], axis=1)
ASKED = pd.DataFrame(RNG.random((N, 2)) < 0.7, columns=["sea", "sky"], index=ROWS)
SHUFFLED = RNG.permutation(N)

FORMS: dict[str, Callable[[Any], Any]] = {
    "frame": lambda rows: (RELEVANT | ~ASKED).iloc[rows],
    "answers": lambda rows: Answers(
        no=(~RELEVANT & ASKED).iloc[rows], yes=(RELEVANT & ASKED).iloc[rows]
    ),
    "candidates": lambda rows: Answers.from_candidates((RELEVANT | ~ASKED).iloc[rows]),
    "positives": lambda rows: Answers.from_positives((RELEVANT & ASKED).iloc[rows]),
}
MIXED = "must have their rows in the same order"


def classifier(form: str = "answers") -> CandidateClassifier:
    rates = {
        "answers": {"no": 0.7, "yes": 0.7},
        "positives": {"yes": 0.7},
    }.get(form, {"exclude": 0.7})
    known: dict[str, Any] = {"class_prior": [0.5, 0.5], "rates": rates}
    return CandidateClassifier(epochs=1, model="linear", random_state=0, **known)


@pytest.mark.filterwarnings("ignore::comes.errors.ComesWarning")
def test_fits_refuse_answers_in_another_order() -> None:
    for form, make in FORMS.items():
        shuffled = make(SHUFFLED)
        name = "candidates" if form == "frame" else "answers"
        for fit in (classifier(form).fit, classifier(form).partial_fit):
            fit(X, make(slice(None)))
            fit(X.iloc[SHUFFLED], shuffled)
            for pair in ({"y": shuffled}, {name: shuffled}):
                with pytest.raises(ComesError, match=MIXED):
                    fit(X, **pair)
        classifier(form).fit(X.to_numpy(), shuffled)
        half = np.arange(0, N, 2)
        labels = make(slice(None))
        classifier(form).fit(X.iloc[half], labels.iloc[half] if form == "frame" else labels[half])
    with pytest.raises(ComesError, match="must have the same rows"):
        classifier().fit(X.reset_index(drop=True), FORMS["answers"](slice(None)))


@pytest.mark.filterwarnings("ignore::comes.errors.ComesWarning")
def test_everything_that_pairs_features_and_answers_refuses_another_order() -> None:
    fitted = classifier().fit(X.to_numpy(), FORMS["answers"](slice(None)))
    named = classifier().fit(X, FORMS["answers"](slice(None)))
    scores = pd.DataFrame(fitted.decision_function(X.to_numpy()), ROWS, ["sea", "sky"])
    uses: list[Callable[[Any], Any]] = [
        lambda answers: named.risk(X, answers),
        lambda answers: named.calibrate(X, answers),
        lambda answers: candidate_scorer("hamming")(named, X, answers),
        lambda answers: estimate_metrics(scores, answers, [0.5, 0.5], n_resamples=0),
        lambda answers: estimate_answer_rates(X, answers),
        lambda answers: fit_together([classifier()], X, answers, [np.arange(N)], n_jobs=1),
        lambda answers: cross_fit([classifier()], X, answers, folds=2, n_jobs=1),
        lambda answers: choose_classifier(
            [classifier()], X, answers, [0.5, 0.5], folds=2, n_jobs=1
        ),
        lambda answers: Dataset(X, ["sea", "sky"], answers=answers),
    ]
    for use in uses:
        use(FORMS["answers"](slice(None)))
        with pytest.raises(ComesError, match=MIXED):
            use(FORMS["answers"](SHUFFLED))
    with pytest.raises(ComesError, match=MIXED):
        estimate_class_prior(X, FORMS["frame"](SHUFFLED))


def test_a_data_set_keeps_rows_and_index_together() -> None:
    dataset = Dataset(X, ["sea", "sky"], answers=FORMS["answers"](slice(None)))
    part = dataset.take(np.arange(0, N, 3))
    assert part.answers is not None and part.answers.index.equals(part.X.index)
