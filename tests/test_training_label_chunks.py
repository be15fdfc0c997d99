"""Training in chunks of labels: the gradient and the weights of training on all labels at once."""

from typing import Any

import numpy as np
import pytest
import torch
from scipy import sparse
from torch import Tensor, nn

from comes.answers import State
from comes.errors import ComesError
from comes.models import Ensemble, linear, mlp
from comes.models.tabular import EnsembleRisk, find_label_head
from comes.risks import BceRisk, HammingRisk, LikelihoodRisk, RankingRisk
from comes.training import TrainOptions, add_gradient, make_optimizer, train
from comes.training.label_chunks import LabelChunks, SparseTargetRows
from comes.training.rows import to_device

N, D, Q = 40, 6, 23
RATE = torch.linspace(0.1, 0.9, Q, dtype=torch.float64)
CPU = torch.device("cpu")
RISKS = {
    "likelihood": LikelihoodRisk(RATE),
    "likelihood with a prior": LikelihoodRisk(RATE, class_prior=RATE / 2),
    "hamming": HammingRisk(RATE / 2),
    "bce": BceRisk(label_weight=RATE),
}


def draw_said(silence: State, share: float = 0.2, n: int = N) -> SparseTargetRows:
    drawn = np.random.default_rng(1).choice(4, (n, Q), p=[1 - share, share, 0, 0]).astype(np.int8)
    return SparseTargetRows(sparse.csr_array(drawn), silence, CPU)


def make_network(kind: str) -> nn.Module:
    torch.manual_seed(0)
    networks = {
        "mlp": mlp(D, Q, hidden=5),
        "four networks": Ensemble(D, Q, hidden=5, n_networks=4),
        "my own": nn.Sequential(nn.Linear(D, 4), nn.Tanh(), nn.Linear(4, Q)),
    }
    return networks[kind].double()


def gradients(model: nn.Module, x: Tensor, seen: Any, risk: Any) -> list[Tensor]:
    model.zero_grad()
    value = add_gradient(model, x, seen, risk, scale=3.0)
    return [value, *(p.grad.clone() for p in model.parameters() if p.grad is not None)]


@pytest.mark.parametrize("kind", ["mlp", "four networks", "my own"])
@pytest.mark.parametrize("silence", [State.MAYBE, State.NOT_ASKED])
def test_chunks_give_the_gradient_of_all_labels_at_once(silence: State, kind: str) -> None:
    model, x = make_network(kind), torch.randn(N, D, dtype=torch.float64)
    said = draw_said(silence).index_select(0, torch.arange(N))
    for name, plain in RISKS.items():
        risk: Any = EnsembleRisk(plain) if kind == "four networks" else plain
        whole = gradients(model, x, said.as_matrix(), risk)
        for chunk in (1, 7, Q):
            parts = gradients(model, x, said, LabelChunks(risk, Q, chunk))
            assert len(parts) == len(whole) == 1 + len(list(model.parameters()))
            for one, other in zip(parts, whole, strict=True):
                assert torch.allclose(one, other, rtol=1e-10, atol=1e-14), (name, chunk)


def test_in_single_precision_the_gradient_agrees_to_a_millionth() -> None:
    torch.manual_seed(2)
    n, d, q = 64, 30, 1500
    model, x = mlp(d, q, hidden=16), torch.randn(n, d)
    drawn = sparse.random_array((n, q), density=0.005, random_state=0, dtype=np.float64)
    states = sparse.csr_array((np.ones(drawn.nnz, np.int8), drawn.coords), shape=(n, q))
    said = SparseTargetRows(states, State.MAYBE, CPU).index_select(0, torch.arange(n))
    risk = LikelihoodRisk(torch.full((q,), 0.005))
    whole = gradients(model, x, said.as_matrix(), risk)
    parts = gradients(model, x, said, LabelChunks(risk, q, 200))
    for one, other in zip(parts, whole, strict=True):
        assert (one - other).norm() <= 1e-6 * other.norm()


def test_gradients_add_up_over_batches() -> None:
    model, x = make_network("mlp"), torch.randn(N, D, dtype=torch.float64)
    said, chunks = draw_said(State.MAYBE), LabelChunks(RISKS["bce"], Q, 4)
    once = gradients(model, x, said.index_select(0, torch.arange(N)), chunks)
    add_gradient(model, x, said.index_select(0, torch.arange(N)), chunks, scale=3.0)
    for parameter, own in zip(model.parameters(), once[1:], strict=True):
        torch.testing.assert_close(parameter.grad, 2 * own)


@pytest.mark.parametrize("silence", [State.MAYBE, State.NOT_ASKED])
def test_training_in_chunks_ends_with_the_same_weights(silence: State) -> None:
    X = to_device(sparse.random_array((N, D), density=0.5, random_state=0), CPU)
    options = TrainOptions(
        make_optimizer("adam", learning_rate=0.01), epochs=3, batch_size=8, progress=False
    )
    risk, said, models = LikelihoodRisk(RATE.float()), draw_said(silence), []
    runs: list[tuple[Any, Any]] = [
        (said.index_select(0, torch.arange(N)).as_matrix(), risk),
        (said, LabelChunks(risk, Q, 5)),
    ]
    for seen, used in runs:
        torch.manual_seed(0)
        models.append(mlp(D, Q, hidden=5, dropout=0.5))
        train(models[-1], X, seen, used, options)
    for one, other in zip(*(model.parameters() for model in models), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)


def test_a_batch_without_an_answer_changes_nothing_where_silence_says_nothing() -> None:
    model, x = make_network("mlp"), torch.randn(N, D, dtype=torch.float64)
    said = draw_said(State.NOT_ASKED, share=0.0).index_select(0, torch.arange(N))
    value, *own = gradients(model, x, said, LabelChunks(RISKS["likelihood"], Q, 5))
    assert value == 0
    assert all((gradient == 0).all() for gradient in own)


def test_labels_that_were_asked_about_come_in_chunks() -> None:
    said = draw_said(State.NOT_ASKED).index_select(0, torch.arange(N))
    parts = list(LabelChunks(RISKS["bce"], Q, 4).split(said))
    assert max(pairs.shape[1] for _, _, pairs in parts) == 4
    assert sum(len(pairs.rows) for _, _, pairs in parts) == len(said.rows)


def test_what_is_frozen_stays_and_the_rest_learns() -> None:
    said = draw_said(State.MAYBE).index_select(0, torch.arange(N))
    for frozen in ("below", "above"):
        model, x = make_network("mlp"), torch.randn(N, D, dtype=torch.float64)
        layers = {"below": model[0], "above": model[-1]}  # type: ignore[index]
        layers[frozen].requires_grad_(False)
        add_gradient(model, x, said, LabelChunks(RISKS["bce"], Q, 4))
        assert all(p.grad is None for p in layers.pop(frozen).parameters())
        (rest,) = layers.values()
        assert all(p.grad is not None for p in rest.parameters())


def test_the_risk_of_a_network_needs_no_scores_of_all_labels() -> None:
    model, x = make_network("four networks").eval(), torch.randn(N, D, dtype=torch.float64)
    said = draw_said(State.MAYBE).index_select(0, torch.arange(N))
    risk = RISKS["hamming"]
    value = LabelChunks(risk, Q, 4).compute_risk(model, x, said)
    torch.testing.assert_close(value, risk(model(x), said))


def test_chunks_fit_the_batch_and_the_device() -> None:
    assert LabelChunks.fitting(RISKS["bce"], 10**5, 256, CPU).chunk == 4096
    assert LabelChunks.fitting(RISKS["bce"], 10, 256, CPU).chunk == 10
    assert LabelChunks.fitting(RISKS["bce"], 10**5, 2**22, CPU).chunk == 1


def test_what_cannot_be_taken_apart_is_refused() -> None:
    with pytest.raises(ComesError, match="select_labels.*got RankingRisk"):
        LabelChunks(RankingRisk(RATE), Q, 5)
    with pytest.raises(ComesError, match="ends in one linear layer with a bias.*got InputLayer"):
        find_label_head(linear(3, 4))
    with pytest.raises(ComesError, match="neither part_size nor precision"):
        said = draw_said(State.MAYBE).index_select(0, torch.arange(N))
        chunks = LabelChunks(RISKS["bce"], Q, 5)
        add_gradient(make_network("mlp"), torch.zeros(N, D), said, chunks, part_size=2)
