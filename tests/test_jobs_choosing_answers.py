"""Choosing settings where the data has answers: by what was said, for the method that uses it."""

import numpy as np
import pytest

from comes import CandidateClassifier
from comes.answers import Answers
from comes.datasets import Dataset
from comes.errors import ComesError
from comes.estimator.training_length import choose_epochs, count_sure
from comes.generation import simulate_answers
from comes.jobs import choose_model
from comes.methods import DEFAULT

RNG = np.random.default_rng(0)
X = RNG.normal(size=(240, 4))
RELEVANT = X[:, :2] > 0.2
NAMES = ["sea", "sky"]
ANSWERS = simulate_answers(RELEVANT, asked_rate=0.7).named(NAMES)
PRIOR = RELEVANT.mean(axis=0)

pytestmark = pytest.mark.filterwarnings("ignore::comes.errors.ComesWarning")


@pytest.mark.slow
def test_settings_are_chosen_for_the_method_of_answers() -> None:
    data = Dataset(X, NAMES, answers=ANSWERS)
    start = CandidateClassifier(hidden=8, random_state=0, class_prior=PRIOR)
    best, choice = choose_model(data, start, ["epochs"])
    assert set(choice.table["method"]) == {DEFAULT}
    usual = choose_epochs(*ANSWERS.shape, count_sure(ANSWERS), batch_size=64)
    assert choice.table["epochs"].tolist() == [round(usual / 10), usual]  # not those of COMES
    assert best.method == DEFAULT and start.method is None
    assert np.isfinite(choice.table["ranking_risk"]).all()


@pytest.mark.slow
def test_the_method_of_answers_is_one_of_those_to_choose_from() -> None:
    data = Dataset(X, NAMES, answers=ANSWERS)
    _, choice = choose_model(data, CandidateClassifier(epochs=1, random_state=0), ["method"])
    assert DEFAULT in set(choice.table["method"]) and "comes-hl" in set(choice.table["method"])


def test_ticked_labels_cannot_choose() -> None:
    data = Dataset(X, NAMES, answers=Answers.from_positives(RELEVANT, NAMES))
    with pytest.raises(ComesError, match="ticked labels have none"):
        choose_model(data, CandidateClassifier(), ["lr"])
