import math
import subprocess
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from scipy import sparse
from torch import Tensor, nn

from comes.errors import ComesError, ComesWarning
from comes.models import linear, mlp
from comes.risks import BceRisk, bce_risk
from comes.training import (
    History,
    TrainedEpoch,
    TrainOptions,
    Validation,
    make_optimizer,
    predict_scores,
    train,
)
from comes.training.options import OPTIMIZERS
from comes.training.rows import SparseRows, to_device
from comes.training.seeding import seeded

CPU = torch.device("cpu")
RNG = np.random.default_rng(0)
X = RNG.normal(size=(103, 6)).astype(np.float32)
CANDIDATES = torch.as_tensor(X[:, :3] > 0)
SGD = make_optimizer("sgd", learning_rate=0.1)


def trained(seed: int = 0, **options: object) -> tuple[nn.Module, History]:
    with seeded(0, CPU):
        model = linear(6, 3)
    settings: dict[str, object] = {"optimizer": SGD, "epochs": 5, "batch_size": 20, "seed": seed}
    both = TrainOptions(**(settings | options))  # type: ignore[arg-type]
    history = train(model, to_device(X, CPU), CANDIDATES, BceRisk(), both)
    return model, history


def weights(model: nn.Module) -> Tensor:
    return torch.cat([p.detach().flatten() for p in model.parameters()])


def test_of_equal_scores_the_last_epoch_is_kept() -> None:
    model, scores = nn.Linear(1, 1), iter([3.0, 1.0, 2.0, 1.0, math.nan])
    seen = []

    def score() -> float:
        assert not model.training
        seen.append(model.weight.item())
        return next(scores)

    rows = torch.tensor([[1.0], [2.0]])
    history = train(
        model,
        rows,
        torch.ones(2, 1, dtype=torch.bool),
        lambda g, s: g.mean(),
        TrainOptions(SGD, epochs=5),
        validation=Validation(score),
    )
    assert history.best_epoch == 4
    assert history.validation[:4] == [3.0, 1.0, 2.0, 1.0]
    assert model.weight.item() == pytest.approx(seen[3])
    assert not model.training


def test_patience_counts_epochs_without_a_better_score() -> None:
    fast, slow = [3.0, 2.0, 2.0, 1.0, 1.0, 1.0], [2.0, 3.0, 1.0, 1.0, 4.0, 5.0]
    for patience, values, n_epochs in ((1, fast, 3), (2, slow, 5), (None, slow, 6)):
        history = train(
            linear(6, 3),
            to_device(X, CPU),
            CANDIDATES,
            BceRisk(),
            TrainOptions(SGD, epochs=6),
            validation=Validation(iter(values).__next__, patience),
        )
        assert len(history.risk) == len(history.validation) == n_epochs, patience


def test_without_a_finite_score_there_are_no_best_weights() -> None:
    with pytest.raises(ComesError, match="no epoch had a finite risk on the held-out rows"):
        train(
            linear(6, 3),
            to_device(X, CPU),
            CANDIDATES,
            BceRisk(),
            TrainOptions(SGD, epochs=2),
            validation=Validation(lambda: math.nan),
        )


def test_same_seed_same_weights_and_another_seed_others() -> None:
    first, again, other = (trained(seed)[0] for seed in (1, 1, 2))
    torch.testing.assert_close(weights(first), weights(again), rtol=0, atol=0)
    assert not torch.equal(weights(first), weights(other))


def test_leaves_the_global_random_state_alone() -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    trained()
    torch.testing.assert_close(torch.rand(3), expected)


def test_learns_and_the_history_has_the_mean_risk_of_every_epoch() -> None:
    model, history = trained(epochs=60)
    assert len(history.risk) == 60
    assert history.risk[-1] < 0.5 * history.risk[0]
    assert history.seconds > 0
    final = bce_risk(predict_scores(model, to_device(X, CPU)), CANDIDATES).item()
    assert history.risk[-1] == pytest.approx(final, rel=0.05)


def test_every_row_is_used_once_per_epoch_in_batches_of_equal_size() -> None:
    seen: list[int] = []

    def risk(scores: Tensor, candidates: Tensor) -> Tensor:
        seen.append(len(candidates))
        return bce_risk(scores, candidates)

    with seeded(0, CPU):
        model = linear(6, 3)
    train(model, to_device(X, CPU), CANDIDATES, risk, TrainOptions(SGD, epochs=1, batch_size=20))
    assert sum(seen) == len(X)
    assert set(seen) == {17, 18}


@pytest.mark.parametrize("cosine", [True, False])
def test_plain_sgd_by_hand(cosine: bool) -> None:
    """One batch, two epochs; with the cosine the second step has half the learning rate."""
    with seeded(0, CPU):
        model, twin = linear(6, 3), linear(6, 3)
    twin.load_state_dict(model.state_dict())
    sgd = make_optimizer("sgd", learning_rate=0.5, momentum=0.0)
    train(
        model,
        to_device(X, CPU),
        CANDIDATES,
        BceRisk(),
        TrainOptions(sgd, epochs=2, batch_size=999, cosine=cosine),
    )
    for rate in (0.5, 0.5 * 0.5 * (1 + math.cos(math.pi / 2)) if cosine else 0.5):
        twin.zero_grad()
        bce_risk(twin(torch.as_tensor(X)), CANDIDATES).backward()
        with torch.no_grad():
            for p in twin.parameters():
                assert p.grad is not None
                p.sub_(rate * p.grad)
    torch.testing.assert_close(weights(model), weights(twin))


def test_risk_scale_scales_the_gradient_and_not_the_history() -> None:
    slow = make_optimizer("sgd", learning_rate=0.01)
    fast = make_optimizer("sgd", learning_rate=0.1)
    scaled, first = trained(optimizer=slow, risk_scale=10.0)
    plain, second = trained(optimizer=fast)
    torch.testing.assert_close(weights(scaled), weights(plain))
    assert first.risk == pytest.approx(second.risk)


def test_optimisers_by_name_get_their_settings_and_learn() -> None:
    for name, kind in OPTIMIZERS.items():
        make = make_optimizer(name, learning_rate=0.1, weight_decay=0.02, momentum=0.3)
        optimizer = make(linear(2, 2).parameters())
        assert isinstance(optimizer, kind)
        assert optimizer.defaults["lr"] == 0.1
        assert optimizer.defaults["weight_decay"] == 0.02
        assert optimizer.defaults.get("momentum", 0.3) == 0.3
        _, history = trained(optimizer=make_optimizer(name, learning_rate=0.05), epochs=30)
        assert history.risk[-1] < 0.7 * history.risk[0], name


def test_optimisers_by_name_take_the_steps_of_torch_and_go_on_from_a_state() -> None:
    X, y = torch.randn(8, 3), torch.randn(8, 2)
    for name, kind in OPTIMIZERS.items():
        ours, theirs = nn.Linear(3, 2), nn.Linear(3, 2)
        theirs.load_state_dict(ours.state_dict())
        own: Any = {"momentum": 0.3} if name == "sgd" else {}
        make = make_optimizer(name, learning_rate=0.1, weight_decay=0.02, momentum=0.3)
        first, second = make(ours.parameters()), make(ours.parameters())
        usual = kind(theirs.parameters(), lr=0.1, weight_decay=0.02, **own)
        for step in range(4):
            if step == 2:
                second.load_state_dict(first.state_dict())
            for model, optimizer in ((ours, first if step < 2 else second), (theirs, usual)):
                optimizer.zero_grad()
                (model(X) - y).square().sum().backward()
                optimizer.step()
        torch.testing.assert_close(ours.weight, theirs.weight)


def test_a_fit_does_not_import_the_compiler_of_torch() -> None:
    program = (
        "import sys, numpy as np; from comes import CandidateClassifier; "
        "X = np.eye(30); CandidateClassifier('bce', epochs=1).fit(X, X > 0); "
        "print('torch._dynamo' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == "False", done.stderr


def test_optimisers_without_sense_are_refused() -> None:
    with pytest.raises(ComesError, match="one of sgd, adam, adamw.*got 'lbfgs'"):
        make_optimizer("lbfgs", learning_rate=0.1)
    fine = {"learning_rate": 0.0, "momentum": 0.0, "weight_decay": 0.0}
    make_optimizer("sgd", **fine)
    for wrong in (
        {"learning_rate": -0.1},
        {"learning_rate": math.inf},
        {"momentum": 1.0},
        {"momentum": -0.1},
        {"weight_decay": math.nan},
    ):
        with pytest.raises(ComesError, match=r"at least 0, momentum in \[0, 1\)"):
            make_optimizer("sgd", **(fine | wrong))


class Spy(nn.Module):
    """A linear model that notes in which state it is called, and draws as dropout would."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = linear(6, 3)
        self.modes: set[tuple[bool, bool]] = set()
        self.draws: list[float] = []

    def forward(self, x: Tensor) -> Tensor:
        self.modes.add((self.training, torch.is_grad_enabled()))
        self.draws.append(torch.rand(()).item())
        output: Tensor = self.layer(x)
        return output


def spied(seed: int) -> Spy:
    model = Spy().eval()
    options = TrainOptions(SGD, epochs=1, seed=seed)
    train(model, to_device(X, CPU), CANDIDATES, BceRisk(), options)
    return model


def test_trains_in_training_mode_and_predicts_in_evaluation_mode() -> None:
    model = spied(3)
    assert model.modes == {(True, True)}
    assert not model.training
    model.train()
    model.modes.clear()
    assert not predict_scores(model, to_device(X, CPU)).requires_grad
    assert model.modes == {(False, False)}


class Noting(nn.Module):
    """A linear model that notes how many rows it gets, and in which precision it scores them."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(6, 3)
        self.seen: set[tuple[int, torch.dtype]] = set()

    def forward(self, x: Tensor) -> Tensor:
        output: Tensor = self.layer(x)
        self.seen.add((len(x), output.dtype))
        return output


def test_part_size_and_precision_reach_the_model() -> None:
    model = Noting()
    options = TrainOptions(SGD, epochs=1, batch_size=52, part_size=10, precision=torch.bfloat16)
    train(model, to_device(X, CPU), CANDIDATES, BceRisk(), options)
    assert {dtype for _, dtype in model.seen} == {torch.bfloat16}
    assert max(n for n, _ in model.seen) <= 10


def test_the_seed_decides_what_the_model_draws() -> None:
    first = spied(3).draws
    torch.rand(7)
    assert spied(3).draws == first
    assert spied(4).draws != first


def test_the_history_weighs_batches_by_their_rows() -> None:
    values: list[tuple[float, int]] = []

    def risk(scores: Tensor, candidates: Tensor) -> Tensor:
        value = bce_risk(scores, candidates)
        values.append((value.item(), len(candidates)))
        return value

    model = linear(6, 3)
    rows = to_device(X, CPU)
    history = train(model, rows, CANDIDATES, risk, TrainOptions(SGD, epochs=1, batch_size=60))
    assert [n for _, n in values] == [52, 51]
    expected = sum(value * n for value, n in values) / len(X)
    assert history.risk[0] == pytest.approx(expected, rel=1e-6)


def test_rows_candidates_and_weights_must_agree() -> None:
    rows = to_device(X, CPU)
    with pytest.raises(ComesError, match="same rows; got 103, 102"):
        train(linear(6, 3), rows, CANDIDATES[1:], BceRisk(), TrainOptions(SGD))
    with pytest.raises(ComesError, match=r"sample_weight must have shape \(103,\); got \(102,\)"):
        train(
            linear(6, 3),
            rows,
            CANDIDATES,
            BceRisk(),
            TrainOptions(SGD),
            sample_weight=torch.ones(102),
        )


def test_a_weighted_row_counts_as_much_in_any_batch() -> None:
    """The mean of the weighted risks of batches is the weighted mean over all rows."""
    weight = torch.linspace(0, 3, len(X))
    seen: list[tuple[Tensor, float]] = []

    def risk(scores: Tensor, candidates: Tensor, own: Tensor) -> Tensor:
        costs = nn.functional.softplus(torch.where(candidates, -scores, scores)).mean(dim=1)
        value = (own * costs).sum() / own.sum()
        seen.append((own, value.item()))
        return value

    with seeded(0, CPU):
        model, twin = linear(6, 3), linear(6, 3)
    twin.load_state_dict(model.state_dict())
    sgd = make_optimizer("sgd", learning_rate=0.1, momentum=0.0)
    options = TrainOptions(sgd, epochs=1, batch_size=999)
    rows = to_device(X, CPU)
    train(model, rows, CANDIDATES, risk, options, sample_weight=weight)
    risk(twin(torch.as_tensor(X)), CANDIDATES, weight).backward()
    for one, two in zip(model.parameters(), twin.parameters(), strict=True):
        assert two.grad is not None
        torch.testing.assert_close(one.detach(), two.detach() - 0.1 * two.grad)
    seen.clear()
    still = make_optimizer("sgd", learning_rate=0.0)
    options = TrainOptions(still, epochs=1, batch_size=20)
    history = train(model, rows, CANDIDATES, risk, options, sample_weight=weight)
    assert len(seen) == 6
    torch.testing.assert_close(torch.cat([own for own, _ in seen]).sort().values, weight)
    expected = sum(float(own.sum()) * value for own, value in seen) / float(weight.sum())
    assert history.risk[0] == pytest.approx(expected, rel=1e-5)


def test_callbacks_are_told_every_epoch_and_one_can_end_the_training() -> None:
    told: list[TrainedEpoch] = []

    def watch(done: TrainedEpoch) -> bool:
        told.append(done)
        return done.epoch == 3

    model, history = trained(epochs=12, callbacks=[lambda done: None, watch, told.append])
    assert [done.epoch for done in told] == [1, 1, 2, 2, 3, 3]  # all are called in the last epoch
    assert [done.risk for done in told[::2]] == history.risk
    assert told[0].epochs == 12 and told[0].model is model and told[0].held_out_risk is None
    assert str(replace(told[0], risk=0.25)) == "epoch  1 of 12: risk 0.2500"


def test_counts_below_one_are_refused() -> None:
    for name in ("epochs", "batch_size", "part_size"):
        wrong: dict[str, Any] = {name: 0}
        with pytest.raises(ComesError, match=f"{name} must be at least 1; got 0"):
            TrainOptions(SGD, **wrong)


def test_weights_that_blow_up_in_the_last_step_are_noticed() -> None:
    with pytest.raises(ComesError, match="weights became nan in epoch 1"):
        trained(optimizer=lambda p: torch.optim.SGD(p, lr=math.inf), epochs=1, batch_size=999)


def test_sparse_rows_train_to_the_weights_of_dense_ones() -> None:
    models = []
    for data in (X, sparse.csr_array(X)):
        with seeded(0, CPU):
            model = mlp(6, 3, hidden=8)
        rows = to_device(data, CPU)
        assert isinstance(rows, SparseRows) == sparse.issparse(data)
        train(model, rows, CANDIDATES, BceRisk(), TrainOptions(SGD, epochs=3, batch_size=20))
        models.append(model)
    torch.testing.assert_close(weights(models[0]), weights(models[1]))


def test_interrupt_keeps_the_weights_so_far() -> None:
    calls = 0

    def risk(scores: Tensor, candidates: Tensor) -> Tensor:
        nonlocal calls
        calls += 1
        if calls == 14:  # in the third epoch of six batches
            raise KeyboardInterrupt
        return bce_risk(scores, candidates)

    model, options = linear(6, 3), TrainOptions(SGD, epochs=5, batch_size=20)
    with pytest.warns(ComesWarning, match="Interrupted after 2 of 5 epochs") as caught:
        history = train(model, to_device(X, CPU), CANDIDATES, risk, options)
    assert caught[0].filename == __file__  # where `train` was called
    assert history.interrupted
    assert len(history.risk) == 2
    calls = 0
    with pytest.raises(KeyboardInterrupt):
        raising = replace(options, return_on_interrupt=False)
        train(model, to_device(X, CPU), CANDIDATES, risk, raising)


def test_a_risk_that_runs_away_stops_with_advice() -> None:
    def runaway(scores: Tensor, candidates: Tensor) -> Tensor:
        return -scores.square().sum().exp()

    with pytest.raises(ComesError, match=r"became -?(inf|nan) in epoch \d+. Lower the learning"):
        train(linear(6, 3), to_device(X, CPU), CANDIDATES, runaway, TrainOptions(SGD, epochs=50))


def test_a_progress_bar_goes_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    trained(progress=True, description="my method")
    captured = capsys.readouterr()
    assert "my method" in captured.err
    assert "5/5" in captured.err
    assert captured.out == ""
    trained()
    assert capsys.readouterr().err == ""  # not a terminal


def test_scores_come_in_the_order_of_the_rows_whatever_the_batch() -> None:
    model, _ = trained()
    rows = to_device(X, CPU)
    torch.testing.assert_close(predict_scores(model, rows, 7), predict_scores(model, rows))
