"""How rows are trained on: by default, as published, and for how long."""

import inspect
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import sparse

from comes.answers import Answers
from comes.errors import ComesError
from comes.estimator import CandidateClassifier
from comes.estimator.scaling import fit_scaling, is_scaled_for_priors
from comes.estimator.settings import find_settings
from comes.estimator.training_length import choose_epochs, count_sure
from comes.generation import independent
from comes.methods import METHODS
from comes.models import Ensemble, mlp

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 4))
RELEVANT = X[:, :3] + 0.3 * RNG.normal(size=(200, 3)) > 0.3
CANDIDATES = independent(RELEVANT, 0.5, seed=0)
PRIOR = RELEVANT.mean(axis=0)
NEAR: dict[str, Any] = {"rtol": 1e-4, "atol": 1e-5}
# "SGD with momentum 0.9, learning rate 5e-3, weight decay 1e-4, 200 epochs, a cosine schedule",
# Equation 13 without a flood; the rest is the field's.
PAPER = {
    "optimizer": "sgd",
    "learning_rate": 5e-3,
    "momentum": 0.9,
    "weight_decay": 1e-4,
    "epochs": 200,
    "cosine": True,
    "batch_size": 256,
    "model": "mlp",
    "hidden": 500,
    "dropout": 0.0,
    "n_networks": 1,
    "starts_at_prior": False,
    "flood_level": 0.0,
    "scale": "dense",
    "reduction": "auto",
    "normaliser": "dataset",
    "threshold": "auto",
    "early_stopping": False,
}
# What is known or measured, or decides nothing about a training.
OTHERS = {
    *("method", "variant", "class_prior", "exclude_rate", "no_rate", "yes_rate", "mistake_rate"),
    *("flip_rate", "uses_maybe", "prior_weight", "validation_share", "patience", "device"),
    *("random_state", "require_candidates", "progress"),
    *("encoder", "output", "warm_start", "callbacks", "verbose"),
}


def fit(said: Any = CANDIDATES, rows: Any = X, **settings: Any) -> CandidateClassifier:
    quick = {"class_prior": PRIOR, "epochs": 1, "hidden": 8, "random_state": 0, "progress": False}
    return CandidateClassifier(**quick | settings).fit(rows, said)


def test_as_published_writes_out_every_setting() -> None:
    assert PAPER.keys() | OTHERS == set(inspect.signature(CandidateClassifier).parameters)
    for method in METHODS:
        parameters = CandidateClassifier.as_published(method).get_params()
        assert {name: parameters[name] for name in PAPER} == PAPER
        assert parameters["method"] == method
    changed = CandidateClassifier.as_published(epochs=7, flood_level="auto").get_params()
    assert (changed["method"], changed["epochs"]) == ("comes-hl", 7)
    assert (changed["flood_level"], changed["learning_rate"]) == ("auto", 5e-3)


def test_training_by_default_is_the_methods_own() -> None:
    for method in METHODS:
        found = find_settings(CandidateClassifier(method), method)
        measured = method in ("likelihood", "bce")
        expected = {name: PAPER[name] for name in found}
        if measured:
            expected = {
                "optimizer": "adam",
                "learning_rate": 5e-4,
                "epochs": None,
                "batch_size": 64,
                "dropout": 0.5,
                "n_networks": 4,
                "starts_at_prior": True,
            }
        assert found == expected, method
        given: dict[str, Any] = {"dropout": 0.0, "n_networks": 2, "epochs": 3}
        assert find_settings(CandidateClassifier(method, **given), method) == found | given
        by_sgd = find_settings(CandidateClassifier(method, optimizer="sgd"), method)
        assert (by_sgd["learning_rate"], by_sgd["epochs"]) == (5e-3, 200)


def test_the_default_is_an_ensemble_that_starts_at_the_prior() -> None:
    fitted = fit(learning_rate=1e-12)
    assert isinstance(fitted.module_, Ensemble) and fitted.module_.dropout.p == 0.5
    assert fitted.module_.weight.shape == (4, 8, 3)
    log_odds = torch.logit(torch.as_tensor(PRIOR, dtype=torch.float32))
    torch.testing.assert_close(fitted.module_.bias.detach(), log_odds.expand(4, 1, 3))
    naive = fit(method="bce", learning_rate=1e-12, class_prior=None)
    share = torch.as_tensor(CANDIDATES.mean(axis=0), dtype=torch.float32)
    assert isinstance(naive.module_, Ensemble)
    torch.testing.assert_close(naive.module_.bias[0, 0].detach(), torch.logit(share))
    said = Answers(no=~RELEVANT, yes=RELEVANT)
    asked: Any = fit(said, method="bce", learning_rate=1e-12, class_prior=None).module_
    share = torch.as_tensor((RELEVANT.sum(axis=0) + 0.5) / 201, dtype=torch.float32)
    torch.testing.assert_close(asked.bias[0, 0].detach(), torch.logit(share))
    plain = CandidateClassifier.as_published("bce", epochs=1, learning_rate=1e-12, random_state=0)
    layers: Any = plain.fit(X, CANDIDATES).module_
    assert abs(layers[2].bias).max() < 0.05


def test_each_network_is_trained_as_one_alone_would_be() -> None:
    """On the same rows in the same order, from its own start."""
    settings: dict[str, Any] = {"dropout": 0.0, "epochs": 3, "learning_rate": 1e-2}
    settings |= {"optimizer": "adam", "batch_size": 64}
    start: Any = fit(**settings | {"learning_rate": 1e-12}).module_
    found: Any = fit(**settings).module_
    for k in range(4):
        own = slice(8 * k, 8 * k + 8)
        alone = mlp(4, 3, 8)
        weights = (start.inputs.weight[:, own], start.inputs.bias[own])
        with torch.no_grad():
            for ours, theirs in zip(
                alone.parameters(), (*weights, start.weight[k].T, start.bias[k, 0]), strict=True
            ):
                ours.copy_(theirs)
        trained: Any = fit(model=alone, **settings).module_
        torch.testing.assert_close(trained[0].weight, found.inputs.weight[:, own], **NEAR)
        torch.testing.assert_close(trained[2].weight, found.weight[k].T, **NEAR)
        assert (found.weight[k] - start.weight[k]).abs().max() > 0.01


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


@pytest.mark.filterwarnings("ignore::comes.errors.ComesWarning")  # of labels without exclusions
def test_little_data_is_fitted() -> None:
    for n, q, method in product((1, 3), (1, 3), ("likelihood", "bce")):
        said, rows = CANDIDATES[:n, :q], X[:n].astype(np.float16)
        scores = fit(said, rows, method=method, class_prior=PRIOR[:q]).decision_function(X[:5])
        assert scores.shape == (5, q) and np.isfinite(scores).all(), (n, q, method)


def test_the_number_of_epochs() -> None:
    for n, q, n_sure, batch_size, expected in (
        (1, 1, 0, 64, 100),  # nothing is sure: the least number of steps
        (1, 1, 1, 64, 1000),  # all is
        (64, 10, 0, 64, 100),
        (65, 10, 0, 64, 50),  # in two steps a pass
        (64, 10, 640, 64, 1000),
        (10**4, 10, 0, 64, 1),  # at least one pass
        (10**6, 10, 10**7, 64, 25),
        (10**6, 10, 5000, 64, 25),  # as much as bears all passes
        (10**6, 10, 1250, 64, 13),  # a quarter of it: half of them
        (10**9, 10**5, 10**14, 64, 25),
    ):
        found = choose_epochs(n, q, n_sure, batch_size)
        assert found == expected, (n, q, n_sure)


def test_more_that_is_sure_never_shortens_a_training() -> None:
    lengths = [choose_epochs(500, 6, n_sure, 64) for n_sure in range(0, 3001, 100)]
    assert lengths == sorted(lengths) and lengths[0] < lengths[-1]


def test_what_counts_as_sure() -> None:
    assert count_sure(Answers.from_candidates(CANDIDATES)) == (~CANDIDATES).sum()
    answers = Answers(no=[[1, 0, 0], [0, 0, 0]], yes=[[0, 1, 0], [0, 0, 0]], maybe=[[0] * 3] * 2)
    assert count_sure(answers) == 2


@pytest.mark.filterwarnings("ignore:No label is predicted:comes.errors.ComesWarning")
def test_the_number_of_epochs_is_that_of_the_history() -> None:
    n_sure = int((~CANDIDATES).sum())
    short = fit(epochs=None, n_networks=1)
    assert len(short.history_.risk) == choose_epochs(200, 3, n_sure, 64)
    assert len(fit(epochs=None, optimizer="sgd", n_networks=1).history_.risk) == 200


def test_flags_are_left_as_they_are() -> None:
    flags = RNG.random((200, 3)) < [0.02, 0.5, 0.98]
    for dtype in (bool, np.int64, np.float32, float):
        scaling = fit_scaling(flags.astype(dtype), "auto")
        np.testing.assert_array_equal(scaling(flags.astype(dtype)), flags, err_msg=str(dtype))
        by_all = fit_scaling(flags.astype(dtype), "dense")(flags.astype(dtype))
        np.testing.assert_allclose(by_all.std(axis=0), 1, rtol=1e-5, err_msg=str(dtype))


def test_flags_beside_numbers() -> None:
    """A column that is constant stays as it is too if it is 0 or 1, and becomes 0 otherwise."""
    flag = (np.arange(200) % 5 == 0).astype(float)
    nearly = np.where(np.arange(200) == 3, 0.5, flag)
    columns = [flag, 10 * X[:, 0] + 3, np.zeros(200), np.ones(200), np.full(200, 7.0), nearly]
    data = np.column_stack(columns)
    found = fit_scaling(data, "auto")(data)
    np.testing.assert_array_equal(found[:, [0, 2, 3]], data[:, [0, 2, 3]])
    np.testing.assert_array_equal(found[:, 4], 0)
    standard = fit_scaling(data, "standard")(data)
    np.testing.assert_array_equal(found[:, [1, 5]], standard[:, [1, 5]])
    assert abs(found[:, 1].mean()) < 1e-6 and found[:, 1].std() == pytest.approx(1, rel=1e-5)
    assert not is_scaled_for_priors(data, "auto") and is_scaled_for_priors(data, "dense")
    assert is_scaled_for_priors(X, "auto")


def test_a_table_of_flags_is_fitted_as_its_numbers() -> None:
    table = pd.DataFrame(X > 0, columns=["a", "b", "c", "d"])
    fitted = fit(rows=table)
    assert fitted.scaling_.scale is not None and (fitted.scaling_.scale == 1).all()
    scores = fitted.decision_function(table)
    np.testing.assert_array_equal(scores, fit(rows=(X > 0).astype(float)).decision_function(X > 0))


def test_dense_and_automatic_scaling_leave_sparse_rows_alone() -> None:
    for how in ("auto", "dense"):
        scaling = fit_scaling(sparse.csr_array(X), how)
        assert scaling.shift is None and scaling.scale is None
    with pytest.raises(ComesError, match="'auto', 'dense', 'standard', 'centre', 'maxabs' or None"):
        fit_scaling(X, "minmax")


def test_an_ensemble_is_saved_and_loaded(tmp_path: Path) -> None:
    fitted = fit()
    fitted.save(tmp_path / "model")
    loaded = CandidateClassifier.load(tmp_path / "model")
    assert isinstance(loaded.module_, Ensemble)
    np.testing.assert_array_equal(loaded.decision_function(X), fitted.decision_function(X))
    np.testing.assert_array_equal(loaded.predict(X), fitted.predict(X))


def test_impossible_networks_are_refused() -> None:
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"dropout": 1.0}, "dropout must be at least 0 and below 1; got 1.0"),
        ({"dropout": -0.1}, "dropout must be at least 0"),
        ({"n_networks": 0}, "n_networks must be a whole number of at least 1; got 0"),
        ({"n_networks": 2.5}, "n_networks must be a whole number"),
    ]
    for settings, message in wrong:
        with pytest.raises(ComesError, match=message):
            fit(**settings)


def test_other_networks_and_sgd_take_the_steps_of_the_paper() -> None:
    for given in ({"model": "linear"}, {"model": mlp}, {"optimizer": "sgd"}):
        found = find_settings(CandidateClassifier(**given), "likelihood")
        steps = (found["optimizer"], found["learning_rate"], found["epochs"], found["batch_size"])
        assert steps == ("sgd", 5e-3, 200, 256)
    adamw = find_settings(CandidateClassifier(optimizer="adamw"), "likelihood")
    assert (adamw["learning_rate"], adamw["epochs"], adamw["batch_size"]) == (5e-4, None, 64)
