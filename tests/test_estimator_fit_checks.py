"""A fit that went wrong says so; one that went well says nothing."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy import sparse
from torch import nn

from comes import Answers, CandidateClassifier
from comes.errors import ComesError, ComesWarning
from comes.estimator import fit_checks, fit_together
from comes.generation import case_b
from comes.training import History

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 4))
RELEVANT = X[:, :3] + 0.3 * RNG.normal(size=(400, 3)) > 0.3
CANDIDATES = case_b(RELEVANT, exclude_rate=0.5)
PRIOR = RELEVANT.mean(axis=0)


def fit(features: Any = X, said: Any = CANDIDATES, **settings: Any) -> CandidateClassifier:
    known: dict[str, Any] = {"method": "likelihood", "class_prior": PRIOR, "progress": False}
    known |= {"hidden": 20, "n_networks": 1, "random_state": 0}
    return CandidateClassifier(**known | settings).fit(features, said)


@pytest.fixture(scope="module")
def blind() -> CandidateClassifier:
    """A fit on features that are all the same, which warns."""
    with pytest.warns(ComesWarning, match="Nothing was learned"):
        return fit(np.zeros((400, 4)), epochs=20)


def make_sparse_rows() -> tuple[Any, Any]:
    """Rows of rare binary features that tell the labels, unscaled: slow to learn with SGD."""
    rng = np.random.default_rng(1)
    relevant = rng.random((300, 12)) < 0.1
    owner = rng.integers(0, 12, size=600)
    features = relevant[:, owner] & (rng.random((300, 600)) < 0.2)
    return sparse.csr_matrix(features.astype(float)), relevant


def test_a_sound_fit_gives_no_warning() -> None:
    for method, rate in (("likelihood", 1e-2), ("comes-hl", 5e-2)):
        found = fit(method=method, epochs=80, learning_rate=rate, hidden=50).history_.warnings
        assert found == [], method


def test_an_undertrained_network_is_noticed_and_a_trained_one_is_not() -> None:
    features, relevant = make_sparse_rows()
    said = Answers(no=~relevant, yes=relevant)
    slow: dict[str, Any] = {
        **CandidateClassifier.as_published("bce", learning_rate=2e-3, hidden=100).get_params(),
        "random_state": 0,
        "progress": False,
    }
    with pytest.warns(ComesWarning):
        fitted = CandidateClassifier(**slow).fit(features, said)
    undertrained, predicts_nothing = fitted.history_.warnings
    assert "undertrained" in undertrained and "more epochs" in undertrained
    assert "No label is predicted" in predicts_nothing
    enough = slow | {"optimizer": "adam", "epochs": 80, "learning_rate": 1e-2}
    assert CandidateClassifier(**enough).fit(features, said).history_.warnings == []


def test_very_few_steps_that_somebody_asks_for_are_not_judged() -> None:
    assert fit(epochs=2, learning_rate=1e-9).history_.warnings == []


@pytest.mark.filterwarnings("ignore:every feature is constant")
def test_a_network_that_did_not_leave_its_start_is_noticed(blind: CandidateClassifier) -> None:
    assert "Nothing was learned" in blind.history_.warnings[0]


def test_a_training_that_ran_away_is_refused_and_leaves_the_earlier_fit() -> None:
    wild: dict[str, Any] = {"optimizer": "sgd", "learning_rate": 1e7, "epochs": 3, "hidden": 500}
    message = r"ran away.*Lower the learning rate|became (inf|nan)"
    for method in ("likelihood", "comes-hl", "bce", "comes-rl"):
        with pytest.raises(ComesError, match=message):
            fit(method=method, n_networks=None, **wild)
    fitted = fit(epochs=3)
    before = fitted.decision_function(X)
    with pytest.raises(ComesError, match=message):
        fitted.set_params(n_networks=None, **wild).fit(X, CANDIDATES)
    np.testing.assert_array_equal(fitted.decision_function(X), before)


class _OneDeaf(nn.Module):
    """A linear layer whose last label hears nothing of the features."""

    def __init__(self, d: int, q: int) -> None:
        super().__init__()
        self.own, self.level = nn.Linear(d, q - 1), nn.Parameter(torch.zeros(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([self.own(x), self.level.expand(len(x), 1)], dim=1)


def test_labels_whose_scores_do_not_vary_are_named() -> None:
    with pytest.warns(ComesWarning, match="scores of label '2' do not vary"):
        fit(model=_OneDeaf, epochs=60, learning_rate=5e-2)


def test_predicting_nothing_is_said_with_what_is_expected() -> None:
    rare = np.random.default_rng(4).random((400, 3)) < 0.2
    noise = 0.4 * rare + np.random.default_rng(3).normal(size=(400, 3))  # tells them, but little
    said = case_b(rare, exclude_rate=0.5)
    settings: dict[str, Any] = {"class_prior": [0.2] * 3, "model": "linear", "epochs": 100}
    settings["learning_rate"] = 1.5e-2
    with pytest.warns(ComesWarning, match=r"No label is predicted for \d+%.*0\.6 a row"):
        fit(noise, said, **settings)
    cut = fit(noise, said, **settings, threshold="prior")
    assert not any("No label" in message for message in cut.history_.warnings)


def test_predicting_everything_is_said() -> None:
    said = case_b(RELEVANT, exclude_rate=0.05)
    with pytest.warns(ComesWarning, match=r"\d+% of all labels are predicted as relevant"):
        fit(said=said, method="bce", class_prior=None, epochs=30)


def test_labels_of_which_too_little_is_said_are_named() -> None:
    said = CANDIDATES.copy()
    said[:, 1], said[:2, 1] = True, False
    with pytest.warns(ComesWarning, match="Fewer than 3 rows exclude label '1': that is too few"):
        fit(said=said, epochs=1)
    yes = RELEVANT & (np.arange(400)[:, None] < np.array([400, 400, 0]))
    yes[np.flatnonzero(RELEVANT[:, 2])[:2], 2] = True
    with pytest.warns(ComesWarning, match="Fewer than 3 answers about label '2' are 'yes'"):
        fit(said=Answers(no=~RELEVANT, yes=yes), epochs=1, no_rate=0.9, yes_rate=0.9)


def test_many_fits_warn_once() -> None:
    settings: dict[str, Any] = {"epochs": 40, "hidden": 4, "n_networks": 1, "random_state": 0}
    classifier = CandidateClassifier("likelihood", class_prior=PRIOR, **settings)
    rows = [np.arange(200), np.arange(200, 400)]
    with pytest.warns(ComesWarning, match="2 of 2 fits have warnings.*Nothing was learned") as all_:
        fitted = fit_together([classifier] * 2, np.zeros((400, 4)), CANDIDATES, rows)
    assert len(all_) == 1
    assert all("Nothing" in model.history_.warnings[0] for model in fitted)


def test_warnings_are_kept_with_the_model_and_old_models_have_none(
    blind: CandidateClassifier, tmp_path: Path
) -> None:
    blind.save(tmp_path / "model")
    again = CandidateClassifier.load(tmp_path / "model")
    assert again.history_.warnings == blind.history_.warnings != []
    path = tmp_path / "model" / "model.json"
    stored = json.loads(path.read_text())
    del stored["history"]["warnings"], stored["checksums"]
    path.write_text(json.dumps(stored))
    assert CandidateClassifier.load(tmp_path / "model").history_.warnings == []


def test_the_fall_is_over_the_last_third_of_the_way_not_of_the_epochs() -> None:
    epochs = np.arange(300)
    flat = fit_checks._measure_fall([1.0] * 300, cosine=True)
    assert flat == pytest.approx(0)
    rate = 0.5 * (1 + np.cos(np.pi * epochs / 300))
    steady = 1 - rate.cumsum() / rate.sum()  # falls in proportion to the learning rate
    assert fit_checks._measure_fall(steady.tolist(), cosine=True) == pytest.approx(1 / 3, abs=0.02)
    by_epoch = (1 - epochs / 300).tolist()
    assert fit_checks._measure_fall(by_epoch, cosine=False) == pytest.approx(0.32, abs=0.02)


def test_an_interrupted_training_is_not_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    fitted = fit(epochs=2)
    history = History(risk=[1.0] * 50, interrupted=True)
    from comes.estimator.inputs import check_training_features
    from comes.estimator.reading_answers import read_answers
    from comes.estimator.row_training import prepare_rows

    training = prepare_rows(fitted, check_training_features(fitted, X), read_answers(CANDIDATES))
    monkeypatch.setattr(fit_checks, "_say_nothing_learned", lambda risks, is_head: ["nothing"])
    fitted.epochs = None
    assert fit_checks.check_fit(fitted, training, history) == []
    assert fit_checks.check_fit(fitted, training, replace(history, interrupted=False))
