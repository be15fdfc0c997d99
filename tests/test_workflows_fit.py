"""Training as a workflow: what it used, what would help most, and that no training is lost."""

import errno
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from comes import Answers, CandidateClassifier, load_model
from comes.datasets import Dataset, make_scenes
from comes.errors import ComesError, ComesWarning
from comes.estimator import storage
from comes.files import defer_from_here, deferring_interrupts, no_longer_defer
from comes.generation import case_b, independent
from comes.methods import Likelihood
from comes.training import loop
from comes.workflows.fit import (
    ADVICE,
    WORTH_SAYING,
    FittedModel,
    describe_use,
    fit_model,
    measure_prior_cost,
)
from comes.workflows.priors import estimate_priors
from command_line import default_ctrl_c

pytestmark = pytest.mark.filterwarnings("ignore::comes.errors.ComesWarning")

TRUTH = make_scenes("train", n=300)
PRIOR = TRUTH.known_relevant().mean(axis=0)
FEW = replace(
    TRUTH,
    answers=Answers.from_candidates(independent(TRUTH.known_relevant(), 0.1, seed=1)),
    relevant=None,
)
SETTINGS: dict[str, Any] = {"hidden": 8, "n_networks": 1, "random_state": 0}

# What training used

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
CODES = RNG.integers(0, 4, size=(60, 2))  # not asked, no, yes, maybe
IS_CHOSEN = RNG.random(CODES.shape) < 0.2


def use(answers: Answers, method: Any = "likelihood", **settings: Any) -> dict[str, str]:
    classifier = CandidateClassifier(
        method, epochs=1, hidden=4, random_state=0, verbose=-1, **settings
    )
    return describe_use(classifier.fit(X, answers), answers)


def test_a_rate_that_is_known_is_given() -> None:
    said = use(Answers.from_codes(CODES), rates={"no": 0.8, "yes": [0.5, 0.9]})
    assert said == {"rates": "no 0.80 given, yes 0.50 to 0.90 given"}


def test_rates_of_candidates_and_ticked_labels() -> None:
    candidates = Answers.from_candidates(CODES != 1)
    prior = 1 - (CODES == 1).mean(axis=0) / 0.6
    assert use(candidates, "comes-hl", class_prior=prior) == {}
    assert use(candidates, class_prior=prior) == {"rates": "exclude 0.60 from the class prior"}
    ticked = use(Answers.from_positives(CODES == 2), rates={"yes": 0.4})
    assert ticked == {"rates": "yes 0.40 given"}


def test_the_summary_of_a_fit_has_it() -> None:
    dataset = Dataset(X, ["sky", "sea"], answers=Answers.from_codes(CODES))
    fitted = fit_model(dataset, {"epochs": 1, "random_state": 0, "no_rate": 0.8, "yes_rate": 0.8})
    assert fitted.summary()["method"] == "likelihood"
    assert fitted.summary()["rates"] == "no 0.80 given, yes 0.80 given"


def test_what_a_method_does_not_use_is_named() -> None:
    answers = Answers.from_codes(CODES, chosen=np.logical_and(CODES > 0, IS_CHOSEN))
    known: dict[str, Any] = {"rates": {"no": 0.8, "yes": 0.7}}
    assert "not_used" not in use(answers, **known)
    assert use(answers, Likelihood(uses_maybe=False), **known)["not_used"] == "maybe"
    assert use(answers, "bce") == {"not_used": "maybe"}
    prior, unused = np.full(2, 0.5), "yes, what a model chose"
    assert use(answers, "comes-hl", class_prior=prior) == {"not_used": unused}
    without = {"not_used": f"who was asked, {unused}"}
    assert use(answers, "comes-rl", class_prior=prior) == without


# What would help most


def test_class_priors_that_are_known_are_not_asked_for() -> None:
    known = SETTINGS | {"class_prior": PRIOR, "epochs": 2}
    assert "advice" not in fit_model(FEW, known).summary()
    naive = CandidateClassifier("bce", epochs=2, random_state=0).fit(FEW.X, FEW.candidates)
    assert measure_prior_cost(naive, FEW.X) == 0


def test_the_cost_rises_with_the_errors() -> None:
    fitted = CandidateClassifier(epochs=20, class_prior=PRIOR, **SETTINGS)
    fitted.fit(FEW.X, FEW.candidates)
    costs = []
    for error in (0.0, 0.02, 0.2):
        object.__setattr__(fitted.rates_, "class_prior_error", np.full(10, error))
        costs.append(measure_prior_cost(fitted, FEW.X))
    assert costs[0] == 0 and costs[1] < WORTH_SAYING < costs[2]
    fitted.history_ = replace(fitted.history_, warnings=[])  # else something else is wrong
    for error, advice in ((0.02, None), (0.2, ADVICE)):
        object.__setattr__(fitted.rates_, "class_prior_error", np.full(10, error))
        assert FittedModel(fitted, FEW).summary().get("advice") == advice
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


# No training is lost

SMALL = replace(
    TRUTH.take(range(60)),
    answers=Answers.from_candidates(case_b(TRUTH.known_relevant()[:60], 0.5, seed=0)),
)
QUICK = {"method": "bce", "epochs": 3, "hidden": 4, "n_networks": 1}

ctrl_c = pytest.fixture(default_ctrl_c)


def test_a_full_disk_does_not_lose_the_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(elsewhere))
    write = storage.write_model

    def fill(path: Path, *parts: Any) -> None:
        if elsewhere not in Path(path).parents:
            raise ComesError(f"{path} cannot be written: No space left on device.")
        write(path, *parts)

    monkeypatch.setattr(storage, "write_model", fill)
    with pytest.raises(ComesError, match="No space left.* The trained model was saved as") as error:
        fit_model(SMALL, QUICK, output=tmp_path / "model")
    place = Path(str(error.value).split("saved as ")[1].removesuffix(": move it from there."))
    assert not (tmp_path / "model").exists()
    assert len(load_model(place).history_.risk) == 3


def test_a_model_that_can_be_saved_nowhere_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path, *parts: Any) -> None:
        raise ComesError(f"{path} cannot be written: No space left on device.")

    monkeypatch.setattr(storage, "write_model", refuse)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(ComesError, match="could not be saved elsewhere, either, and is lost"):
        fit_model(SMALL, QUICK, output=tmp_path / "model")


def test_an_error_of_the_disk_inside_safetensors_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from safetensors import SafetensorError

    def fail(*_: Any) -> None:
        raise SafetensorError("I/O error: No space left on device (os error 28)")

    monkeypatch.setattr("safetensors.torch.save_file", fail)
    model = CandidateClassifier("bce", epochs=1, hidden=4).fit(np.eye(4), np.eye(4) > 0)
    with pytest.raises(ComesError, match="cannot be written: No space left on device. Free some"):
        model.save(tmp_path / "model")
    assert list(tmp_path.iterdir()) == [] and errno.ENOSPC == 28


@pytest.mark.usefixtures("ctrl_c")
def test_a_signal_after_the_last_epoch_waits_for_the_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check = loop.check_weights

    def interrupt(*parts: Any) -> None:
        signal.raise_signal(signal.SIGINT)
        check(*parts)

    monkeypatch.setattr("comes.training.loop.check_weights", interrupt)
    path = tmp_path / "model"
    with (
        pytest.warns(ComesWarning, match="when the training was done: the model is saved as"),
        pytest.raises(KeyboardInterrupt),
    ):
        fit_model(SMALL, QUICK | {"class_prior": [0.2] * 10}, output=path)
    assert len(load_model(path).history_.risk) == 3


@pytest.mark.usefixtures("ctrl_c")
def test_signals_wait_raise_and_do_not_wait_twice() -> None:
    done = []
    with pytest.raises(KeyboardInterrupt), deferring_interrupts(at_once=False):
        defer_from_here()
        signal.raise_signal(signal.SIGINT)
        done.append("first")
        with deferring_interrupts():
            signal.raise_signal(signal.SIGINT)  # waits for the inner block, then for none
            done.append("second")
        done.append("never")
    assert done == ["first", "second"]
    with pytest.raises(KeyboardInterrupt), deferring_interrupts():
        signal.raise_signal(signal.SIGINT)
        no_longer_defer()
        done.append("never")
    assert "never" not in done
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
