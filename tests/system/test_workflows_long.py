"""Jobs with all estimates that they make by default."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from comes import CandidateClassifier
from comes.answers import Answers
from comes.datasets import Dataset, ReadOptions, make_scenes
from comes.errors import ComesWarning
from comes.estimator.prepare import count_epochs
from comes.generation import case_b, independent, simulate_answers
from comes.methods import DEFAULT
from comes.priors import ClassPriorEstimate
from comes.workflows.fit import ADVICE, choose_model, describe_use, fit_model
from comes.workflows.priors import estimate_priors, read_given_priors

pytestmark = pytest.mark.filterwarnings("ignore::comes.errors.ComesWarning")

SCENES = make_scenes("train", n=150)
CANDIDATES = case_b(SCENES.known_relevant(), 0.5, seed=0)
DATA = Dataset(SCENES.X, SCENES.label_names, CANDIDATES, SCENES.known_relevant())
SETTINGS: dict[str, Any] = {"method": "likelihood", "random_state": 0, "progress": False}


def make_data(n: int, rate: float) -> Dataset:
    scenes = make_scenes("train", n=n)
    candidates = independent(scenes.known_relevant(), rate, seed=1)
    return Dataset(scenes.X, scenes.label_names, candidates)


FEW = make_data(300, 0.1)
RNG = np.random.default_rng(0)
X = RNG.normal(size=(240, 4))
RELEVANT = X[:, :2] > 0.2
NAMES = ["sea", "sky"]
ANSWERS = simulate_answers(RELEVANT, asked_rate=0.7).rename_labels(NAMES)
PRIOR = RELEVANT.mean(axis=0)


def test_a_choice_without_a_prior_estimates_one() -> None:
    start = CandidateClassifier("bce", epochs=10, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ComesWarning)  # so few rows say little about priors
        best, choice = choose_model(DATA, start, ["epochs"])
    assert np.asarray(best.class_prior).shape == (10,)
    assert isinstance(best.class_prior, ClassPriorEstimate)  # so that its error is known
    assert choice.table["epochs"].tolist() == [1, 10]


def test_few_exclusions_ask_for_class_priors_and_many_do_not() -> None:
    fitted = fit_model(FEW, SETTINGS)
    assert fitted.summary()["advice"] == ADVICE
    enough = fit_model(make_data(2000, 0.5), SETTINGS)
    assert "advice" not in enough.summary()


def test_a_table_of_ones_own_may_leave_labels_open(tmp_path: Path) -> None:
    path = tmp_path / "own.csv"
    own = pd.DataFrame({"label": FEW.label_names, "class_prior": [0.3] + [np.nan] * 9})
    estimated = estimate_priors(FEW)
    own.iloc[::-1].to_csv(path, index=False)
    given = read_given_priors(path, FEW)
    np.testing.assert_allclose(given.class_prior[0], 0.3)
    np.testing.assert_allclose(given.class_prior[1:], estimated["class_prior"][1:])
    assert given.flags[0] == "known" and given.standard_error[0] == 0
    own.assign(standard_error=0.01).to_csv(path, index=False)
    given = read_given_priors(path, FEW)
    np.testing.assert_allclose(given.class_prior[0], 0.3)
    assert given.standard_error[0] == 0.01 and given.flags[0] == "ok"
    np.testing.assert_allclose(given.standard_error[1:], estimated["standard_error"][1:])


def test_settings_are_chosen_for_the_method_of_answers() -> None:
    data = Dataset(X, NAMES, answers=ANSWERS)
    start = CandidateClassifier(hidden=8, random_state=0, class_prior=PRIOR)
    best, choice = choose_model(data, start, ["epochs"])
    assert set(choice.table["method"]) == {DEFAULT}
    usual = count_epochs({"epochs": None, "batch_size": 64}, ANSWERS)
    assert choice.table["epochs"].tolist() == [round(usual / 10), usual]  # not those of COMES
    assert best.method == DEFAULT
    assert np.isfinite(choice.table["ranking_risk"]).all()


def test_the_method_of_answers_is_one_of_those_to_choose_from() -> None:
    data = Dataset(X, NAMES, answers=ANSWERS)
    _, choice = choose_model(data, CandidateClassifier(epochs=1, random_state=0), ["method"])
    assert DEFAULT in set(choice.table["method"]) and "comes-hl" in set(choice.table["method"])


def test_a_clean_file_sharpens_priors_and_a_fit(tmp_path: Path) -> None:
    items = [f"photo {row}" for row in range(len(X))]
    said = pd.DataFrame(np.array(["", "no", "yes", "maybe"])[ANSWERS.codes], columns=NAMES)
    features = pd.DataFrame(X).add_prefix("x").assign(item=items)
    pd.concat([features, said], axis=1).to_csv(tmp_path / "answers.csv", index=False)
    truth = pd.DataFrame(RELEVANT.astype(int), columns=NAMES).assign(item=items)
    truth[:160].to_csv(tmp_path / "expert.csv", index=False)
    reading, clean = ReadOptions(labels=NAMES), tmp_path / "expert.csv"
    blind = estimate_priors(tmp_path / "answers.csv", reading=reading)
    sharp = estimate_priors(tmp_path / "answers.csv", reading=reading, clean=clean)
    assert (sharp["standard_error"] < blind["standard_error"]).all()
    settings = {"epochs": 1, "random_state": 0}
    fitted = fit_model(tmp_path / "answers.csv", settings, reading=reading, clean=clean)
    again = fit_model(tmp_path / "answers.csv", settings, reading=reading)
    errors = [m.classifier.class_prior_error_ for m in (fitted, again)]
    assert errors[0] is not None and errors[1] is not None
    assert (errors[0] < errors[1]).all()


def test_rates_of_candidates_are_described_as_estimated() -> None:
    candidates = Answers.from_candidates(ANSWERS.candidates)
    fitted = CandidateClassifier(epochs=1, random_state=0).fit(X, candidates)
    assert describe_use(fitted, candidates)["rates"].endswith(" estimated")


def test_a_rate_of_yes_is_not_described_where_nobody_says_it() -> None:
    answers = Answers.from_codes(np.where(ANSWERS.codes == 2, 3, ANSWERS.codes))
    fitted = CandidateClassifier(epochs=1, random_state=0).fit(X, answers)
    told = describe_use(fitted, answers)
    assert told["rates"].startswith("no ") and "yes" not in told["rates"]


def test_everything_is_used_by_default() -> None:
    fitted = CandidateClassifier(epochs=1, random_state=0).fit(X, ANSWERS)
    told = describe_use(fitted, ANSWERS)
    assert told.keys() == {"rates"} and told["rates"].count(" estimated") == 2
