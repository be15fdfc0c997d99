"""What `comes fit` says would help most, and the table that is filled in for it."""

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from comes import CandidateClassifier
from comes.datasets import Dataset, make_scenes
from comes.errors import ComesError, ComesWarning
from comes.generation import independent
from comes.workflows.fit import ADVICE, WORTH_SAYING, advise, fit_model, measure_prior_cost
from comes.workflows.priors import estimate_priors

SETTINGS: dict[str, Any] = {"hidden": 8, "n_networks": 1, "random_state": 0}


def make_data(n: int, rate: float) -> Dataset:
    scenes = make_scenes("train", n=n)
    candidates = independent(scenes.known_relevant(), rate, seed=1)
    return Dataset(scenes.X, scenes.label_names, candidates)


FEW = make_data(300, 0.1)


@pytest.fixture(autouse=True)
def be_quiet() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ComesWarning)
        yield


def test_class_priors_that_are_known_are_not_asked_for() -> None:
    prior = make_scenes("train", n=300).known_relevant().mean(axis=0)
    known = SETTINGS | {"class_prior": prior, "epochs": 2}
    assert fit_model(FEW, known).advice is None
    naive = CandidateClassifier("bce", epochs=2, random_state=0).fit(FEW.X, FEW.candidates)
    assert measure_prior_cost(naive, FEW.X) == 0


def test_the_cost_rises_with_the_errors() -> None:
    X, prior = FEW.X, make_scenes("train", n=300).known_relevant().mean(axis=0)
    fitted = CandidateClassifier(epochs=20, class_prior=prior, **SETTINGS).fit(X, FEW.candidates)
    costs = []
    for error in (0.0, 0.02, 0.2):
        object.__setattr__(fitted.rates_, "class_prior_error", np.full(10, error))
        costs.append(measure_prior_cost(fitted, X))
    assert costs[0] == 0 and costs[1] < WORTH_SAYING < costs[2]
    fitted.history_ = replace(fitted.history_, warnings=[])  # else something else is wrong
    for error, advice in ((0.02, None), (0.2, ADVICE)):
        object.__setattr__(fitted.rates_, "class_prior_error", np.full(10, error))
        assert advise(fitted, X) == advice
    for word in ("comes priors", "known_prior", "--priors", "--clean"):
        assert word in ADVICE


def test_the_table_is_filled_in_and_read_by_fit(tmp_path: Path) -> None:
    path = tmp_path / "priors.csv"
    printed = estimate_priors(FEW, path, exclude_rate=0.1)
    table = pd.read_csv(path, dtype={"label": str})
    assert list(table.columns[:3]) == ["label", "known_prior", "class_prior"]
    assert table["known_prior"].isna().all() and "known_prior" not in printed
    untouched: Any = fit_model(FEW, SETTINGS | {"epochs": 1}, priors=path).classifier
    np.testing.assert_allclose(untouched.class_prior_, table["class_prior"])
    table.loc[[0, 3], "known_prior"] = [0.4, 0.1]
    table.to_csv(path, index=False)
    some: Any = fit_model(FEW, SETTINGS | {"epochs": 1}, priors=path).classifier
    expected = table["known_prior"].fillna(table["class_prior"])
    np.testing.assert_allclose(some.class_prior_, expected)
    assert some.class_prior_error_ is not None
    assert (some.class_prior_error_ == 0).nonzero()[0].tolist() == [0, 3]
    table["known_prior"] = 0.2
    table.to_csv(path, index=False)
    known: Any = fit_model(FEW, SETTINGS | {"epochs": 1}, priors=path).classifier
    np.testing.assert_array_equal(known.class_prior_, [0.2] * 10)
    assert known.class_prior_error_ is None


def test_a_wrong_table_of_ones_own_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "own.csv"
    for wrong in (1.3, "often"):
        own = pd.DataFrame({"label": FEW.label_names, "class_prior": wrong})
        own.to_csv(path, index=False)
        with pytest.raises(
            ComesError, match=rf"own.csv must hold numbers in \[0, 1\].*got {wrong!r}"
        ):
            fit_model(FEW, SETTINGS | {"epochs": 1}, priors=path)
