"""Labels that say too little are named; a fit that went wrong says so, and no other."""

import json
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import sparse
from torch import nn

from comes import Answers, CandidateClassifier
from comes.errors import ComesError, ComesWarning
from comes.estimator import fit_together
from comes.estimator.checks import FitCheck, check_labels, measure_fall
from comes.estimator.inputs import read_answers
from comes.estimator.prepare import prepare
from comes.generation import case_b, simulate_answers
from comes.methods import CCMN, find_method
from comes.training import History

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 4))
RELEVANT = X[:, :3] + 0.3 * RNG.normal(size=(400, 3)) > 0.3
CANDIDATES = case_b(RELEVANT, exclude_rate=0.5)
PRIOR = RELEVANT.mean(axis=0)


def fit(features: Any = X, answers: Any = CANDIDATES, **settings: Any) -> CandidateClassifier:
    known: dict[str, Any] = {"class_prior": PRIOR, "hidden": 20, "n_networks": 1}
    known |= {"random_state": 0, "verbose": -1}
    return CandidateClassifier(**known | settings).fit(features, answers)


@pytest.fixture(scope="module")
def blind() -> CandidateClassifier:
    """A fit on features that are all the same, which warns."""
    with pytest.warns(ComesWarning, match="Nothing was learned|every feature is constant"):
        return fit(np.zeros((400, 4)), epochs=20)


# Labels, before a fit


def warnings_of(answers: Any, method: Any = "likelihood", names: Any = None) -> str:
    """Return all that is said about labels before a fit."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        check_labels(read_answers(answers, label_names=names), find_method(method))
    return "\n".join(str(one.message) for one in caught)


def test_what_an_idle_label_means_depends_on_the_method() -> None:
    no_zero = "nothing pushes its scores down, and they mean nothing."
    taken = "it is taken for relevant everywhere."
    learned, not_shown = "it is learned as irrelevant.", "nothing shows where it is relevant."
    of_prior = "it is learned as irrelevant; its class prior is taken as 0."
    cases: list[tuple[Any, str, str]] = [
        ("comes-rl", no_zero, of_prior),
        ("comes-hl", "it is left out of the risk, since nothing shows where", of_prior),
        ("likelihood", "nothing shows where it is irrelevant.", learned),
        ("bce", taken, learned),
        ("mlcl", "nothing shows where it is irrelevant.", not_shown),
        ("gdf", taken, not_shown),
        ("ccmn", taken, learned),
        (CCMN(variant="ranking"), no_zero, learned),
        (max, "nothing shows where it is irrelevant.", not_shown),
    ]
    odd = CANDIDATES.copy()
    for method, never, always in cases:
        odd[:, 1] = True
        found = warnings_of(odd, method, ["sea", "sky", "sun"])
        assert found.startswith(f"No row excludes label 'sky': {never}"), method
        odd[:, 1] = False
        found = warnings_of(odd, method, ["sea", "sky", "sun"])
        assert found == f"Every row excludes label 'sky': {always}", method
        assert warnings_of(CANDIDATES, method) == ""


def test_labels_of_which_too_little_is_said_are_named() -> None:
    few = CANDIDATES.copy()
    few[:, 1], few[:2, 1] = True, False
    assert warnings_of(few).startswith("Fewer than 3 rows exclude label '1': that is too few")
    some = simulate_answers(RELEVANT, asked_rate=0.5)
    no, yes, maybe = some.excluded.copy(), some.confirmed.copy(), some.doubtful.copy()
    assert warnings_of(Answers(no, yes, maybe)) == ""
    no[:, 0] = yes[:, 0] = maybe[:, 0] = False
    no[:, 1], yes[:, 1], maybe[:, 1] = False, False, True
    assert warnings_of(Answers(no, yes, maybe)).splitlines()[:2] == [
        "Nobody was asked about label '0': nothing is learned about it.",
        "Every answer about label '1' is 'maybe': nothing is learned about it.",
    ]
    no, yes = some.excluded.copy(), some.confirmed.copy()
    no[:, 0] = yes[:, 1] = False
    yes[np.flatnonzero(yes[:, 2])[2:], 2] = False
    found = warnings_of(Answers(no, yes))
    assert "Every sure answer about label '0' is 'yes': it is learned as relevant." in found
    assert "Every sure answer about label '1' is 'no': it is learned as irrelevant." in found
    assert "Fewer than 3 answers about label '2' are 'yes': that is too few" in found
    no[np.flatnonzero(some.excluded[:, 0])[:2], 0] = True
    assert "Fewer than 3 answers about label '0' are 'no'" in warnings_of(Answers(no, yes))


def test_methods_of_candidates_say_that_they_take_nothing_else() -> None:
    answers = simulate_answers(RELEVANT, asked_rate=0.5)
    for method in ("ccmn", "gdf", "ctl", "mlcl", "comrank"):
        expected = f"Method {method!r} takes candidates only: who was asked, and yes, are not used."
        assert warnings_of(answers, method) == expected
    for method in ("likelihood", "bce", "comes-hl", "comes-rl"):
        assert warnings_of(answers, method) == ""
    settings: dict[str, Any] = {"method": CCMN(flip_rate=0.5), "epochs": 1}
    with pytest.warns(ComesWarning, match="takes candidates only"):
        fitted = fit(answers=answers, **settings)
    same = fit(answers=Answers(no=answers.excluded), **settings)
    np.testing.assert_array_equal(fitted.decision_function(X), same.decision_function(X))


def test_a_label_excluded_nowhere_or_everywhere_is_a_warning_with_its_name() -> None:
    odd = pd.DataFrame(CANDIDATES, columns=pd.Index(["sky", "sea", "sun"]))
    odd["sea"] = True
    with pytest.warns(ComesWarning, match="No row excludes label 'sea': it is left out"):
        never = fit(answers=odd, method="comes-hl", epochs=2)
    assert np.isfinite(never.decision_function(X)).all()
    odd["sea"] = False
    with pytest.warns(ComesWarning, match="Every row excludes label 'sea'.*prior is taken as 0"):
        always = fit(answers=odd, method="comes-hl", epochs=30, batch_size=50, hidden=100)
    assert always.class_prior_ is not None and always.class_prior_[1] == 0
    assert not always.predict(X)[:, 1].any()


# The result of a fit


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
    answers = Answers(no=~relevant, yes=relevant)
    slow: dict[str, Any] = {
        **CandidateClassifier.as_published("bce", learning_rate=2e-3, hidden=100).get_params(False),
        "random_state": 0,
        "verbose": -1,
    }
    with pytest.warns(ComesWarning):
        fitted = CandidateClassifier(**slow).fit(features, answers)
    undertrained, predicts_nothing = fitted.history_.warnings
    assert "undertrained" in undertrained and "more epochs" in undertrained
    assert "No label is predicted" in predicts_nothing
    enough = slow | {"optimizer": "adam", "epochs": 80, "learning_rate": 1e-2}
    assert CandidateClassifier(**enough).fit(features, answers).history_.warnings == []


def test_very_few_steps_that_somebody_asks_for_are_not_judged() -> None:
    assert fit(epochs=2, learning_rate=1e-9).history_.warnings == []


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
    candidates = case_b(rare, exclude_rate=0.5)
    settings: dict[str, Any] = {"class_prior": [0.2] * 3, "model": "linear", "epochs": 100}
    settings["learning_rate"] = 1.5e-2
    with pytest.warns(ComesWarning, match=r"No label is predicted for \d+%.*0\.6 a row"):
        fit(noise, candidates, **settings, threshold="half")
    for threshold in ("auto", "prior"):
        cut = fit(noise, candidates, **settings, threshold=threshold)
        assert not any("No label" in message for message in cut.history_.warnings)


def test_predicting_everything_is_said() -> None:
    candidates = case_b(RELEVANT, exclude_rate=0.05)
    with pytest.warns(ComesWarning, match=r"\d+% of all labels are predicted as relevant"):
        fit(answers=candidates, method="bce", class_prior=None, epochs=30)


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
    stored |= {"format": 1, "comes_version": "0.1.0"}
    stored["parameters"]["method"] = "likelihood"
    del stored["history"]["warnings"], stored["checksums"]
    path.write_text(json.dumps(stored))
    assert CandidateClassifier.load(tmp_path / "model").history_.warnings == []


def test_the_fall_is_over_the_last_third_of_the_way_not_of_the_epochs() -> None:
    epochs = np.arange(300)
    flat = measure_fall([1.0] * 300, cosine=True)
    assert flat == pytest.approx(0)
    rate = 0.5 * (1 + np.cos(np.pi * epochs / 300))
    steady = 1 - rate.cumsum() / rate.sum()  # falls in proportion to the learning rate
    assert measure_fall(steady.tolist(), cosine=True) == pytest.approx(1 / 3, abs=0.02)
    by_epoch = (1 - epochs / 300).tolist()
    assert measure_fall(by_epoch, cosine=False) == pytest.approx(0.32, abs=0.02)


def test_an_interrupted_training_is_not_judged(blind: CandidateClassifier) -> None:
    check = FitCheck(prepare(blind, np.zeros((400, 4)), read_answers(CANDIDATES)))
    history = History(risk=[1.0] * 50, interrupted=True)
    assert check.find_problems(blind, history) == []
    (found,) = check.find_problems(blind, replace(history, interrupted=False))
    assert "Nothing was learned" in found


def test_warnings_name_the_line_of_the_user() -> None:
    rng = np.random.default_rng(0)
    X, candidates = rng.normal(size=(60, 3)), rng.random((60, 3)) < 0.3
    for method in ("comes-hl", "likelihood"):  # which ask for the prior on different ways
        model = CandidateClassifier(method, class_prior=[0.9, 0.2, 0.3], epochs=1, hidden=4)
        with pytest.warns(ComesWarning, match="class prior of label '0' is above") as caught:
            model.fit(X, candidates)
        assert {warning.filename for warning in caught} == {__file__}
