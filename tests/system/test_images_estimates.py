"""Heads of pictures where neither class priors nor rates are known, and all is estimated."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from comes.answers import Answers, LongAnswers, State
from comes.generation import case_b, simulate_answers
from comes.methods import Likelihood
from comes.priors import count_class_prior
from pictures import pictures, small_classifier

PIXELS, RELEVANT = pictures()
CANDIDATES = case_b(RELEVANT, exclude_rate=0.5, seed=0)
PRIOR = count_class_prior(RELEVANT)
ASKED = simulate_answers(RELEVANT, asked_rate=0.8, seed=1)
TICKED = RELEVANT & (np.random.default_rng(0).random(RELEVANT.shape) < 0.8)


def people() -> Answers:
    """Return answers of two people, a sure and an unsure one, about the same pairs."""
    rng = np.random.default_rng(5)
    rows, labels = (part.ravel() for part in np.indices(RELEVANT.shape))
    rows, labels = np.tile(rows, 2), np.tile(labels, 2)
    person = np.repeat([0, 1], RELEVANT.size)
    truth = np.where(RELEVANT[rows, labels], int(State.YES), int(State.NO))
    is_sure = rng.random(len(rows)) < np.where(person == 0, 0.9, 0.3)
    code = np.where(is_sure, truth, int(State.MAYBE)).astype(np.int8)
    said = LongAnswers(rows, labels, person, code, ("ann", "bob"))
    return Answers.from_long(said, shape=RELEVANT.shape)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMES_CACHE", str(tmp_path / "cache"))


@pytest.mark.parametrize("method", ["likelihood", "comes-hl"])
def test_a_class_prior_that_is_not_given_is_estimated(method: str) -> None:
    clf = small_classifier(method=method, class_prior=None).fit(PIXELS, CANDIDATES)
    assert clf.class_prior_ is not None
    assert np.abs(clf.class_prior_ - PRIOR).max() < 0.3


@pytest.mark.parametrize(
    ("answers", "settings"),
    [
        (ASKED, {"class_prior": None}),
        (ASKED, {"method": Likelihood(uses_maybe=False)}),
        (ASKED, {"threshold": "f1"}),
        (Answers.from_positives(TICKED), {}),
        (Answers.from_positives(TICKED), {"threshold": "f1"}),
    ],
)
def test_pictures_are_learned_from_answers_of_every_kind(answers: Any, settings: Any) -> None:
    clf = small_classifier(**settings).fit(PIXELS, answers)
    assert clf.score(*pictures(seed=1)) > 0.85
    assert clf.network_.views is not None


def test_rates_of_people_are_estimated_once_for_all_folds() -> None:
    clf = small_classifier(class_prior=None, threshold="f1").fit(PIXELS, people())
    assert set(clf.rates_.people) == {"ann", "bob"}
    assert clf.score(*pictures(seed=1)) > 0.85
