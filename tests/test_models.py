import numpy as np
import pytest
import torch
from scipy import sparse
from torch import nn

from comes.models import InputLayer, linear, mlp
from comes.training import to_device

CPU = torch.device("cpu")


def test_sparse_rows_give_the_values_and_gradients_of_dense_ones() -> None:
    X = sparse.random_array((20, 30), density=0.2, format="csr", rng=np.random.default_rng(0))
    X = sparse.vstack([X, sparse.csr_array((1, 30))], format="csr")  # an empty row
    layer = InputLayer(30, 4)
    gradients = []
    rows = torch.tensor([20, 0, 19, 3, 20, 7])
    for data in (to_device(X, CPU), to_device(X.toarray(), CPU)):
        layer.zero_grad()
        output = layer(data[rows])
        output.square().sum().backward()
        assert layer.weight.grad is not None
        gradients.append((output.detach(), layer.weight.grad.clone()))
    torch.testing.assert_close(*gradients)


def test_a_plain_linear_layer_takes_sparse_rows_too() -> None:
    X = sparse.csr_array(np.eye(4, dtype=np.float32))
    layer = nn.Linear(4, 2)
    rows = torch.arange(4)
    torch.testing.assert_close(layer(to_device(X, CPU)[rows]), layer(torch.eye(4)))


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
