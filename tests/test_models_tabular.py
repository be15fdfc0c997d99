"""Networks for rows; several at once are what each of them is alone."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from scipy import sparse
from torch import Tensor, nn

from comes.errors import ComesError
from comes.models import Dropout, Ensemble, InputLayer, linear, low_rank, mlp
from comes.models.tabular import EnsembleRisk, as_csr_tensor, find_label_head
from comes.risks import BceRisk, hamming_risk
from comes.training.rows import to_device

D, Q, HIDDEN, N_NETWORKS, N = 7, 3, 5, 4, 11
NEAR: dict[str, Any] = {"rtol": 1e-4, "atol": 0.0}
CPU = torch.device("cpu")
RNG = np.random.default_rng(0)
ROWS = sparse.random_array((N, D), density=0.4, format="csr", rng=RNG)
CANDIDATES = torch.as_tensor(RNG.random((N, Q)) < 0.6)
EVERY = torch.arange(N)
PRIOR = torch.tensor([0.2, 0.3, 0.4])


def by_prior(scores: Tensor, candidates: Tensor) -> Tensor:
    return hamming_risk(scores, candidates, PRIOR)


def make_rows(kind: str) -> Any:
    return to_device(ROWS if kind == "sparse" else ROWS.toarray(), CPU)[EVERY]


def make_ensemble() -> Ensemble:
    torch.manual_seed(0)
    return Ensemble(D, Q, HIDDEN, n_networks=N_NETWORKS)


def take_out(ensemble: Ensemble, k: int) -> nn.Module:
    """Return one of the networks, as an `mlp` of its own."""
    alone = mlp(D, Q, HIDDEN)
    own = slice(k * HIDDEN, (k + 1) * HIDDEN)
    weights = ensemble.state_dict()
    alone.load_state_dict(
        {
            "0.weight": weights["inputs.weight"][:, own],
            "0.bias": weights["inputs.bias"][own],
            "2.weight": weights["weight"][k].T,
            "2.bias": weights["bias"][k, 0],
        }
    )
    return alone


@pytest.mark.parametrize("kind", [InputLayer, nn.Linear])
def test_sparse_rows_give_the_values_and_gradients_of_dense_ones(kind: type) -> None:
    """Row 20 is empty."""
    X = sparse.random_array((20, 30), density=0.2, format="csr", rng=np.random.default_rng(0))
    X = sparse.vstack([X, sparse.csr_array((1, 30))], format="csr")
    layer = kind(30, 4)
    for index in (np.int32, np.int64):
        X.indices, X.indptr = X.indices.astype(index), X.indptr.astype(index)
        for rows in ([20, 0, 19, 3, 20, 7], [20], [20, 20]):
            gradients = []
            for data in (to_device(X, CPU), to_device(X.toarray(), CPU)):
                layer.zero_grad()
                output = layer(data[torch.tensor(rows)])
                output.sum().backward()  # whose gradient is one number, expanded
                own = (output.detach(), layer.weight.grad.clone(), layer.bias.grad.clone())
                gradients.append(own)
            torch.testing.assert_close(*gradients)


def test_an_input_layer_starts_like_a_linear_layer_of_torch() -> None:
    torch.manual_seed(0)
    for d in (5, 500):
        ours, theirs = InputLayer(d, 200), nn.Linear(d, 200)
        for a, b in ((ours.weight, theirs.weight), (ours.bias, theirs.bias)):
            assert a.abs().max().item() == pytest.approx(b.abs().max().item(), rel=0.1)
            assert a.std().item() == pytest.approx(b.std().item(), rel=0.15)


def test_mlp_is_the_network_of_the_field() -> None:
    network = mlp(7, 3)
    sizes = [tuple(p.shape) for p in network.parameters()]
    assert sizes == [(7, 500), (500,), (3, 500), (3,)]
    x = torch.randn(2, 7)
    assert isinstance(network, nn.Sequential)
    first, last = network[0], network[2]
    assert isinstance(first, InputLayer)
    expected = last((x @ first.weight + first.bias).clamp(min=0))
    torch.testing.assert_close(network(x), expected)
    assert sum(p.numel() for p in linear(7, 3).parameters()) == 8 * 3


def test_a_low_rank_is_the_product_of_two_linear_layers() -> None:
    network, x = low_rank(7, 3, rank=2), torch.randn(2, 7)
    first, last = network.children()
    torch.testing.assert_close(network(x), last(first(x)))
    assert [tuple(p.shape) for p in network.parameters()] == [(7, 2), (2,), (3, 2), (3,)]
    assert any(isinstance(part, Dropout) for part in low_rank(7, 3, dropout=0.5).children())


def test_scores_are_those_of_the_networks_alone() -> None:
    for kind in ("dense", "sparse"):
        ensemble, rows = make_ensemble(), make_rows(kind)
        alone = torch.stack([take_out(ensemble, k)(rows) for k in range(N_NETWORKS)], dim=1)
        assert alone.shape == (N, N_NETWORKS, Q)
        torch.testing.assert_close(ensemble(rows), alone)
        torch.testing.assert_close(ensemble.eval()(rows), alone.mean(dim=1))


def test_scores_by_plain_loops() -> None:
    ensemble = make_ensemble().double().eval()
    x = make_rows("dense").double()
    W, b, V, c = (dict(ensemble.named_parameters())[n] for n in NAMES)
    for i in range(N):
        for j in range(Q):
            of_each = []
            for k in range(N_NETWORKS):
                total = c[k, 0, j]
                for h in range(HIDDEN):
                    unit = k * HIDDEN + h
                    total = total + (x[i] @ W[:, unit] + b[unit]).clamp(min=0) * V[k, h, j]
                of_each.append(total)
            torch.testing.assert_close(ensemble(x)[i, j], sum(of_each) / N_NETWORKS)


NAMES = ("inputs.weight", "inputs.bias", "weight", "bias")


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("risk", [BceRisk(), by_prior])
def test_gradients_are_those_of_separate_trainings(
    kind: str, risk: Callable[[Tensor, Tensor], Tensor]
) -> None:
    """Of the sum of the risks, which is the mean times the number of networks."""
    ensemble, rows = make_ensemble(), make_rows(kind)
    (N_NETWORKS * EnsembleRisk(risk)(ensemble(rows), CANDIDATES)).backward()
    for k in range(N_NETWORKS):
        alone = take_out(ensemble, k)
        risk(alone(rows), CANDIDATES).backward()
        own = slice(k * HIDDEN, (k + 1) * HIDDEN)
        W, b, V, c = (dict(ensemble.named_parameters())[n].grad for n in NAMES)
        assert W is not None and b is not None and V is not None and c is not None
        found = (W.to_dense()[:, own], b[own], V[k].T, c[k, 0])
        expected = [p.grad.to_dense() for p in alone.parameters() if p.grad is not None]
        for ours, theirs in zip(found, expected, strict=True):
            torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("network", [mlp(D, Q, HIDDEN), low_rank(D, Q, 2), make_ensemble().eval()])
@pytest.mark.parametrize("labels", [slice(1, 3), torch.tensor([2, 0])])
def test_a_label_head_scores_some_labels(network: nn.Module, labels: Any) -> None:
    head, rows = find_label_head(network), make_rows("dense")
    scores = head.score(head.units(rows), labels).mean(dim=0)
    torch.testing.assert_close(scores, network(rows)[:, labels])
    assert head.n_labels == Q


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_a_linear_model_beside_networks_has_half_the_say_and_is_not_trained(kind: str) -> None:
    torch.manual_seed(0)
    both = Ensemble(D, Q, HIDDEN, n_networks=N_NETWORKS, has_linear=True)
    plain, rows = make_ensemble(), make_rows(kind)
    missing, extra = plain.load_state_dict(both.state_dict(), strict=False)
    assert not missing and sorted(extra) == ["linear.bias", "linear.weight"]
    assert plain.linear is None and both.linear is not None
    mean = plain.eval()(rows)
    torch.testing.assert_close(both.eval()(rows), mean * 2 / 3)  # it starts at zero
    torch.nn.init.normal_(both.linear.weight)
    torch.nn.init.normal_(both.linear.bias)
    of_linear = rows.to_dense() @ both.linear.weight + both.linear.bias
    torch.testing.assert_close(both(rows), (2 * mean + of_linear) / 3)
    before = both.linear.weight.clone()
    scores = both.train()(rows)
    torch.testing.assert_close(scores, plain.train()(rows))
    assert scores.shape == (N, N_NETWORKS, Q)
    trained = [p for p in both.parameters() if p.requires_grad]
    assert len(trained) == len(list(plain.parameters())) == len(list(both.parameters())) - 2
    optimiser = torch.optim.AdamW(both.parameters(), lr=0.1, weight_decay=0.1)
    EnsembleRisk(BceRisk())(scores, CANDIDATES).backward()
    optimiser.step()
    assert both.linear.weight.grad is None and both.linear.bias.grad is None
    assert torch.equal(both.linear.weight, before)


def test_a_network_without_a_label_head_is_refused() -> None:
    for network in (linear(D, Q), nn.Sequential(nn.ReLU()), nn.Sequential(nn.Linear(D, Q, False))):
        with pytest.raises(ComesError, match="ends in one linear layer with a bias"):
            find_label_head(network)


def test_a_sparse_tensor_shares_the_memory_of_its_matrix() -> None:
    X = ROWS.copy()
    rows = as_csr_tensor(X)
    X.data *= 2
    np.testing.assert_array_equal(rows.to_dense().numpy(), X.toarray())


def test_the_risk_of_mean_scores_is_the_risk() -> None:
    scores = make_ensemble().eval()(make_rows("dense"))
    torch.testing.assert_close(
        EnsembleRisk(by_prior)(scores, CANDIDATES), by_prior(scores, CANDIDATES)
    )


def test_each_network_starts_like_one_alone_and_unlike_the_others() -> None:
    torch.manual_seed(0)
    ensemble, alone = Ensemble(50, Q, 400, n_networks=3), mlp(50, Q, 400)
    ours = dict(ensemble.named_parameters())
    for name, theirs in zip(NAMES, alone.parameters(), strict=True):
        widest = theirs.abs().max().item()
        assert ours[name].abs().max().item() == pytest.approx(widest, rel=0.5)
    assert not torch.equal(ensemble.weight[0], ensemble.weight[1])


def test_state_is_saved_and_loaded() -> None:
    ensemble, other = make_ensemble(), Ensemble(D, Q, HIDDEN, n_networks=N_NETWORKS)
    rows = make_rows("dense")
    assert not torch.equal(other(rows), ensemble(rows))
    other.load_state_dict(ensemble.state_dict())
    torch.testing.assert_close(other(rows), ensemble(rows), rtol=0, atol=0)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_dropout_leaves_out_a_share_and_keeps_the_expectation(share: float) -> None:
    torch.manual_seed(0)
    x = torch.full((1001, 401), 3.0)  # a number of entries that is no multiple of four
    found = Dropout(share)(x)
    assert (found == 0).double().mean() == pytest.approx(share, abs=0.005)
    assert found.double().mean() == pytest.approx(3, rel=0.01)
    torch.testing.assert_close(found[found != 0].unique(), torch.tensor([3 / (1 - share)]), **NEAR)
    for dim in (0, 1):  # each unit and each row on its own account
        spread = (found == 0).double().mean(dim=dim).std()
        expected = (share * (1 - share) / x.shape[dim]) ** 0.5
        assert spread == pytest.approx(expected, rel=0.15)
    both = ((found[:, :-1] == 0) & (found[:, 1:] == 0)).double().mean()
    assert both == pytest.approx(share**2, abs=0.005)  # neighbours share random bits


def test_dropout_follows_the_seed_and_its_gradient_the_mask() -> None:
    layer, x = Dropout(0.5), torch.randn(9, 7, requires_grad=True)
    torch.manual_seed(3)
    first, second = layer(x), layer(x)
    torch.manual_seed(3)
    assert torch.equal(layer(x), first) and not torch.equal(second, first)
    first.sum().backward()
    assert x.grad is not None
    torch.testing.assert_close(x.grad, torch.where(first == 0, 0.0, 2.0))


def test_dropout_of_nothing_leaves_all_and_of_all_nothing() -> None:
    x = torch.randn(5, 3)
    for share in (0.0, 1e-9):
        torch.testing.assert_close(Dropout(share)(x), x)
    assert (Dropout(1.0)(x) == 0).all()
    assert Dropout(0.5)(x[:0]).shape == (0, 3)
    assert Dropout(0.5)(x.bfloat16()).dtype == torch.bfloat16


def test_dropout_is_left_out_of_evaluation() -> None:
    x = make_rows("dense")
    for network in (mlp(D, Q, dropout=0.5), Ensemble(D, Q, dropout=0.5)):
        assert not torch.equal(network(x), network(x))
        network.eval()
        assert torch.equal(network(x), network(x))
