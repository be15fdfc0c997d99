import numpy as np
import pytest
import torch
from scipy import sparse
from torch import nn

from comes.models import InputLayer, linear, mlp
from comes.training import to_device

CPU = torch.device("cpu")


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("rows", [[20, 0, 19, 3, 20, 7], [20], [20, 20]])
@pytest.mark.parametrize("kind", [InputLayer, nn.Linear])
def test_sparse_rows_give_the_values_and_gradients_of_dense_ones(
    index: type, rows: list[int], kind: type
) -> None:
    """Row 20 is empty."""
    X = sparse.random_array((20, 30), density=0.2, format="csr", rng=np.random.default_rng(0))
    X = sparse.vstack([X, sparse.csr_array((1, 30))], format="csr")
    X.indices, X.indptr = X.indices.astype(index), X.indptr.astype(index)
    layer = kind(30, 4)
    gradients = []
    for data in (to_device(X, CPU), to_device(X.toarray(), CPU)):
        layer.zero_grad()
        output = layer(data[torch.tensor(rows)])
        output.sum().backward()  # whose gradient is one number, expanded
        gradients.append((output.detach(), layer.weight.grad.clone(), layer.bias.grad.clone()))
    torch.testing.assert_close(*gradients)


@pytest.mark.parametrize("d", [5, 500])
def test_starts_like_a_linear_layer_of_torch(d: int) -> None:
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
