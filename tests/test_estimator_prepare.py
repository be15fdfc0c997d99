"""How rows are trained on: by default, as published, with a network of one's own; for how long."""

from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from comes.answers import Answers
from comes.estimator import CandidateClassifier
from comes.estimator.inputs import read_answers
from comes.estimator.prepare import Training, choose_settings, count_epochs, prepare
from comes.generation import independent
from comes.methods import METHODS, find_method
from comes.models import Ensemble, mlp
from refusals import refused

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 4))
RELEVANT = X[:, :3] + 0.3 * RNG.normal(size=(200, 3)) > 0.3
CANDIDATES = independent(RELEVANT, 0.5, seed=0)
PRIOR = RELEVANT.mean(axis=0)
LOG_ODDS = torch.logit(torch.as_tensor(PRIOR, dtype=torch.float32))
NEAR: dict[str, Any] = {"rtol": 1e-4, "atol": 1e-5}
# "SGD with momentum 0.9, learning rate 5e-3, weight decay 1e-4, 200 epochs, a cosine schedule",
# Equation 13 without a flood; the rest is the field's.
PAPER = {
    "optimizer": "sgd",
    "learning_rate": 5e-3,
    "momentum": 0.9,
    "epochs": 200,
    "cosine": True,
    "batch_size": 256,
    "dropout": 0.0,
    "n_networks": 1,
    "starts_at_prior": False,
    "model": "mlp",
    "scale": "columns",
}
MEASURED = PAPER | {
    "optimizer": "adam",
    "learning_rate": 5e-4,
    "epochs": None,
    "batch_size": 64,
    "dropout": 0.5,
    "n_networks": 4,
    "starts_at_prior": True,
    "model": "wide_and_deep",
    "scale": "rows",
}


def make(**settings: Any) -> CandidateClassifier:
    quick = {"class_prior": PRIOR, "epochs": 1, "hidden": 8, "random_state": 0, "verbose": -1}
    return CandidateClassifier(**quick | settings)


def fit(answers: Any = CANDIDATES, rows: Any = X, **settings: Any) -> CandidateClassifier:
    return make(**settings).fit(rows, answers)


def start(answers: Any = CANDIDATES, **settings: Any) -> Training:
    """Return a training before its first step."""
    return prepare(make(**settings), X, read_answers(answers))


def choose(method: Any, **settings: Any) -> dict[str, Any]:
    return choose_settings(CandidateClassifier(method, **settings), find_method(method))


# Settings


def test_as_published_is_the_training_of_the_paper() -> None:
    fixed = {"model": "mlp", "hidden": 500, "weight_decay": 1e-4, "scale": "dense"}
    fixed |= {"threshold": "half", "early_stopping": False, "class_prior": None, "rates": None}
    for method in METHODS:
        published = CandidateClassifier.as_published(method)
        found = choose_settings(published, find_method(published.method))
        assert found == PAPER | {"scale": "dense"}, method
        parameters = published.get_params()
        assert {name: parameters[name] for name in fixed} == fixed
        own: Any = published.method
        assert (own.name, own.reduction) == (method, "sum")
        assert getattr(own, "flood_level", 0.0) == 0.0
        assert getattr(own, "normaliser", "dataset") == "dataset"
    changed = CandidateClassifier.as_published(epochs=7, method="bce", optimizer="adam")
    assert (changed.epochs, changed.optimizer, changed.learning_rate) == (7, "adam", 5e-3)
    assert str(CandidateClassifier.as_published().method) == "comes-hl"
    assert CandidateClassifier.as_published("comes-rl").optimizer == "sgd"


def test_training_by_default_is_the_methods_own() -> None:
    for method in METHODS:
        expected = MEASURED if method in ("likelihood", "bce") else PAPER
        assert choose(method) == expected, method
        given: dict[str, Any] = {"dropout": 0.0, "n_networks": 3, "epochs": 3, "scale": None}
        given["model"] = "mlp"
        assert choose(method, **given) == expected | given
        names = ("optimizer", "learning_rate", "epochs", "batch_size", "scale")
        steps = {name: PAPER[name] for name in names}
        for by_sgd in ("sgd", {"name": "sgd"}):
            assert choose(method, optimizer=by_sgd) == expected | steps, method
        linear = expected | steps | {"n_networks": 1, "model": "linear"}
        assert choose(method, model="linear") == linear, method
        assert choose(method, model="linear", scale="rows") == linear | {"scale": "rows"}, method
    adamw = choose("likelihood", optimizer="adamw")
    assert adamw == MEASURED | {"optimizer": "adamw"}


class Own(nn.Module):
    def __init__(self, d: int, q: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(d, 8), nn.Tanh(), nn.Linear(8, q))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        output: torch.Tensor = self.layers(x)
        return output


def test_a_network_of_ones_own_is_trained_as_ours() -> None:
    """Its settings, and where it starts, do not depend on whose network it is."""
    expected = start(model="mlp", epochs=None).options
    models: tuple[Any, ...] = (Own(4, 3), Own, partial(mlp, hidden=9), mlp(4, 3, 9), "low_rank")
    for model in models:
        assert choose("likelihood", model=model) == MEASURED | {"n_networks": 1, "model": model}
        training = start(model=model, epochs=None)
        found = training.options
        assert (found.epochs, found.batch_size, found.cosine, found.seed) == (
            expected.epochs,
            expected.batch_size,
            expected.cosine,
            expected.seed,
        )
        assert found.risk_scale == expected.risk_scale / 4  # of which four networks have a fourth
        optimizer = found.optimizer(training.network.parameters())
        assert isinstance(optimizer, torch.optim.Adam)
        assert (optimizer.defaults["lr"], optimizer.defaults["weight_decay"]) == (5e-4, 1e-4)
        (*_, last) = (m for m in training.network.modules() if isinstance(m, nn.Linear))
        torch.testing.assert_close(last.bias.detach(), LOG_ODDS)
    own: Any = Own(4, 3)
    before = own.layers[2].bias.detach().clone()
    start(model=own)
    assert torch.equal(own.layers[2].bias, before)  # a copy is trained
    kept: Any = start(model=own, optimizer={"starts_at_prior": False}).network
    assert torch.equal(kept.layers[2].bias, before)
    start(model=nn.Linear(4, 3, bias=False))  # which has no level to start at


def test_an_optimizer_as_a_dict() -> None:
    training = start(
        optimizer={"name": "sgd", "starts_at_prior": False, "cosine": False, "momentum": 0.5}
    )
    network: Any = training.network
    made = training.options.optimizer(network.parameters())
    assert isinstance(made, torch.optim.SGD) and made.defaults["momentum"] == 0.5
    assert training.options.cosine is False
    assert network.bias.abs().max() < 0.5 < LOG_ODDS.abs().max()
    by_default = start(optimizer={"cosine": True})
    adam = by_default.options.optimizer(by_default.network.parameters())
    assert isinstance(adam, torch.optim.Adam) and by_default.options.cosine is True
    paper: Any = start(method="comes-hl", optimizer={"starts_at_prior": True})
    torch.testing.assert_close(paper.network[-1].bias.detach(), LOG_ODDS)
    own = start(optimizer={"name": torch.optim.Adagrad, "cosine": False})
    assert isinstance(own.options.optimizer(own.network.parameters()), torch.optim.Adagrad)
    assert own.options.cosine is False
    scores = [
        fit(optimizer={"name": "sgd"} | more, epochs=3).decision_function(X)
        for more in ({}, {"momentum": 0.5}, {"starts_at_prior": False})
    ]
    assert not np.allclose(scores[0], scores[1]) and not np.allclose(scores[0], scores[2])
    falls, stays = (fit(optimizer={"cosine": c}, epochs=5).decision_function(X) for c in (1, 0))
    assert not np.allclose(falls, stays)


# Networks


def test_the_default_is_an_ensemble_that_starts_at_the_prior() -> None:
    network: Any = start().network
    assert isinstance(network, Ensemble) and network.dropout.p == 0.5
    assert network.weight.shape == (4, 8, 3) and network.linear is not None
    torch.testing.assert_close(network.bias.detach(), LOG_ODDS.expand(4, 1, 3))
    answers = Answers(no=~RELEVANT, yes=RELEVANT)
    of_answers = (RELEVANT.sum(axis=0) + 0.5) / 201
    for given, share in ((CANDIDATES, CANDIDATES.mean(axis=0)), (answers, of_answers)):
        naive: Any = start(given, method="bce", class_prior=None).network
        expected = torch.logit(torch.as_tensor(share, dtype=torch.float32))
        torch.testing.assert_close(naive.bias[0, 0].detach(), expected)
    for method in ("bce", "likelihood"):
        plain = CandidateClassifier.as_published(method, class_prior=PRIOR)
        layers: Any = prepare(plain, X, read_answers(CANDIDATES)).network
        assert abs(layers[2].bias).max() < 0.05


def test_each_network_is_trained_as_one_alone_would_be() -> None:
    """On the same rows in the same order, from its own start."""
    settings: dict[str, Any] = {"dropout": 0.0, "epochs": 3, "learning_rate": 1e-2}
    settings["n_networks"] = 4
    first: Any = start(**settings).network
    found: Any = fit(**settings).module_
    for k in range(4):
        own = slice(8 * k, 8 * k + 8)
        alone = mlp(4, 3, 8)
        weights = (first.inputs.weight[:, own], first.inputs.bias[own])
        with torch.no_grad():
            for ours, theirs in zip(
                alone.parameters(), (*weights, first.weight[k].T, first.bias[k, 0]), strict=True
            ):
                ours.copy_(theirs)
        trained: Any = fit(model=alone, **settings).module_
        torch.testing.assert_close(trained[0].weight, found.inputs.weight[:, own], **NEAR)
        torch.testing.assert_close(trained[2].weight, found.weight[k].T, **NEAR)
        assert (found.weight[k] - first.weight[k]).abs().max() > 0.01


def test_equal_seeds_give_equal_scores_with_dropout() -> None:
    for method in ("likelihood", "bce"):
        first, second, other = (
            fit(method=method, random_state=k).decision_function(X) for k in (0, 0, 1)
        )
        np.testing.assert_array_equal(first, second, err_msg=method)
        assert not np.allclose(first, other), method


def test_a_fit_leaves_the_random_numbers_of_torch_alone() -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    fit()
    assert torch.equal(torch.rand(3), expected)


def test_preparing_changes_nothing_of_the_classifier() -> None:
    classifier = make(threshold="f1", early_stopping=0.3)
    before = dict(vars(classifier))
    training = prepare(classifier, X, read_answers(CANDIDATES))
    assert vars(classifier) == before
    assert training.held_out is not None and training.held_out.answers.shape == (60, 3)
    assert training.targets.shape == (140, 3) and training.answers.shape == (200, 3)
    np.testing.assert_array_equal(training.rates.class_prior, PRIOR)


@pytest.mark.filterwarnings("ignore::comes.errors.ComesWarning")  # of labels without exclusions
def test_little_data_is_fitted() -> None:
    for n, q, method in product((1, 3), (1, 3), ("likelihood", "bce")):
        given, rows = CANDIDATES[:n, :q], X[:n].astype(np.float16)
        scores = fit(given, rows, method=method, class_prior=PRIOR[:q]).decision_function(X[:5])
        assert scores.shape == (5, q) and np.isfinite(scores).all(), (n, q, method)


def test_an_ensemble_is_saved_and_loaded(tmp_path: Path) -> None:
    fitted = fit()
    fitted.save(tmp_path / "model")
    loaded = CandidateClassifier.load(tmp_path / "model")
    assert isinstance(loaded.module_, Ensemble)
    np.testing.assert_array_equal(loaded.decision_function(X), fitted.decision_function(X))
    np.testing.assert_array_equal(loaded.predict(X), fitted.predict(X))


# Epochs


class Counted:
    """Answers of which only the numbers are known."""

    kind = "answers"

    def __init__(self, n: int, q: int, confident: int) -> None:
        self.shape, self.confident = (n, q), confident

    def count_state(self, state: int) -> Any:
        return np.array([self.confident if state == 1 else 0])


def count(n: int, q: int, confident: int, model: str = "mlp") -> int:
    settings = {"epochs": None, "batch_size": 64, "model": model}
    return count_epochs(settings, Counted(n, q, confident))


def test_the_number_of_epochs() -> None:
    for n, q, confident, expected in (
        (1, 1, 0, 100),  # nothing is sure: the least number of steps
        (1, 1, 1, 1000),  # all is
        (64, 10, 0, 100),
        (65, 10, 0, 50),  # in two steps a pass
        (64, 10, 640, 1000),
        (10**4, 10, 0, 1),  # at least one pass
        (10**6, 10, 10**7, 25),
        (10**6, 10, 5000, 25),  # as much as bears all passes
        (10**6, 10, 1250, 13),  # a quarter of it: half of them
        (10**9, 10**5, 10**14, 25),
    ):
        assert count(n, q, confident) == expected, (n, q, confident)
    lengths = [count(500, 6, confident) for confident in range(0, 3001, 100)]
    assert lengths == sorted(lengths) and lengths[0] < lengths[-1]  # more never shortens it
    for model in ("wide_and_deep", "blend"):  # the linear model learns from few answers
        assert count(10**6, 10, 1250, model) == 25 and count(1, 1, 1, model) == 1000
    assert count_epochs({"epochs": 7, "batch_size": 64}, Counted(1, 1, 1)) == 7


@pytest.mark.filterwarnings("ignore:No label is predicted:comes.errors.ComesWarning")
def test_the_number_of_epochs_is_that_of_the_history() -> None:
    """Which follows from what is sure: no, and yes, but neither maybe nor candidates."""
    fitted = fit(epochs=None, n_networks=1, model="mlp")
    assert len(fitted.history_.risk) == count(200, 3, int((~CANDIDATES).sum()))
    maybe = Answers(no=[[1, 0, 0], [0, 0, 0]], yes=[[0, 1, 0], [0, 0, 0]], maybe=[[0, 0, 1]] * 2)
    settings = {"epochs": None, "batch_size": 64, "model": "mlp"}
    assert count_epochs(settings, maybe) == count(2, 3, 2)
    assert len(fit(epochs=None, optimizer="sgd", n_networks=1).history_.risk) == 200


def test_impossible_networks_and_optimizers_are_refused() -> None:
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"dropout": 1.0}, "dropout must be at least 0 and below 1; got 1.0"),
        ({"dropout": -0.1}, "dropout must be at least 0"),
        ({"n_networks": 0}, "n_networks must be a whole number of at least 1; got 0"),
        ({"n_networks": 2.5}, "n_networks must be a whole number"),
        ({"hidden": 2**40}, "hidden units would take .* GiB. Lower hidden"),
        ({"optimizer": {"beta": 1}}, "has name, momentum, cosine, starts_at_prior; got 'beta'"),
        ({"optimizer": {"cosine": "no"}}, "cosine of an optimizer must be True or False; got 'no'"),
        ({"optimizer": {"name": "adagrad"}}, "sgd, adam, adamw.*got 'adagrad'"),
        ({"optimizer": {"name": "sgd", "momentum": 1.0}}, "momentum in .0, 1."),
    ]
    for settings, message in wrong:
        with refused(message):
            fit(**settings)
