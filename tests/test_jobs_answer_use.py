"""The line that says what a training used of the answers."""

from typing import Any

import numpy as np
import pytest

from comes import Answers, CandidateClassifier
from comes.answers import LongAnswers
from comes.datasets import Dataset
from comes.methods import Likelihood
from comes.workflows.fit import describe_use, fit_model

pytestmark = pytest.mark.filterwarnings("ignore::comes.errors.ComesWarning")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
CODES = RNG.integers(0, 4, size=(60, 2))  # not asked, no, yes, maybe
NO, YES, MAYBE = np.bincount(CODES.ravel(), minlength=4)[1:].tolist()
IS_CHOSEN = RNG.random(CODES.shape) < 0.2
CHOSEN = np.logical_and(CODES > 0, IS_CHOSEN)
ALL = f"{NO + YES + MAYBE} answers ({NO} no, {YES} yes, {MAYBE} maybe"


def use(answers: Answers, method: Any = "likelihood", **settings: Any) -> str:
    classifier = CandidateClassifier(
        method, epochs=1, hidden=4, random_state=0, verbose=-1, **settings
    )
    return describe_use(classifier.fit(X, answers), answers)


def test_a_rate_that_is_known_is_given() -> None:
    said = use(Answers.from_codes(CODES), rates={"no": 0.8, "yes": [0.5, 0.9]})
    assert said == f"{ALL}); no rate 0.80 given; yes rate 0.50 to 0.90 given"


def test_answers_of_people_are_counted_one_by_one() -> None:
    people = LongAnswers.read(
        [0, 0, 1, 2], [0, 0, 1, 0], ["no", "yes", "maybe", "no"], ["ann", "bob", "ann", "ann"]
    )
    chosen = np.zeros(CODES.shape, dtype=bool)
    chosen[0, 0] = True
    answers = Answers.from_long(people, CODES.shape, chosen=chosen)
    said = use(answers, rates={"no": 0.8, "yes": 0.7})
    assert said.startswith("4 answers (2 no, 1 yes, 1 maybe; 2 chosen by a model) of 2 people; no")


def test_candidates_and_ticked_labels() -> None:
    candidates = Answers.from_candidates(CODES != 1)
    plain = f"{NO} exclusions; who was asked is not known"
    prior = 1 - (CODES == 1).mean(axis=0) / 0.6
    assert use(candidates, "comes-hl", class_prior=prior) == plain
    given = use(candidates, class_prior=prior)
    assert given == f"{plain}; exclude rate 0.60 from the class prior"
    ticked = use(Answers.from_positives(CODES == 2), rates={"yes": 0.4})
    assert ticked == f"{YES} ticked labels; yes rate 0.40 given"


def test_the_summary_of_a_fit_has_it() -> None:
    dataset = Dataset(X, ["sky", "sea"], answers=Answers.from_codes(CODES))
    fitted = fit_model(dataset, {"epochs": 1, "random_state": 0, "no_rate": 0.8, "yes_rate": 0.8})
    assert fitted.summary()["method"] == "likelihood"
    assert fitted.summary()["used"] == f"{ALL}); no rate 0.80 given; yes rate 0.80 given"


def test_what_a_method_does_not_use_is_named() -> None:
    answers = Answers.from_codes(CODES, chosen=CHOSEN)
    head = f"{ALL}; {CHOSEN.sum()} chosen by a model)"
    known: dict[str, Any] = {"rates": {"no": 0.8, "yes": 0.7}}
    assert use(answers, **known).startswith(f"{head}; no rate")
    assert use(answers, Likelihood(uses_maybe=False), **known).startswith(
        f"{head}, without maybe; no rate"
    )
    assert use(answers, "bce") == f"{head}, without maybe"
    prior = np.full(2, 0.5)
    unused = "yes and what a model chose"
    assert use(answers, "comes-hl", class_prior=prior) == f"{head}, without {unused}"
    without = f"who was asked and {unused}"
    assert use(answers, "comes-rl", class_prior=prior) == f"{head}, without {without}"
