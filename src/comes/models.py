"""Networks: functions of (number of features, number of labels) that return a module.

A network maps rows to scores. Its input is a dense tensor or, if X is a scipy sparse matrix, a
torch CSR tensor: `InputLayer` multiplies either at the cost of its non-zeros, and so does
``nn.Linear`` (more slowly), so a network of your own works with both.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class InputLayer(nn.Module):
    """A linear layer for dense and for sparse CSR rows; initialised as ``nn.Linear``.

    The weight has shape (n_features, n_outputs), the transpose of ``nn.Linear``'s: a sparse
    row reads the weight rows of its non-zeros and no others.
    """

    def __init__(self, d: int, n_outputs: int) -> None:
        super().__init__()
        bound = 1 / math.sqrt(d)
        self.weight = nn.Parameter(torch.empty(d, n_outputs).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(n_outputs).uniform_(-bound, bound))

    def forward(self, x: Tensor) -> Tensor:
        """Return x @ weight + bias."""
        if x.layout is not torch.sparse_csr:
            return torch.addmm(self.bias, x, self.weight)
        product = F.embedding_bag(
            x.col_indices(),
            self.weight,
            x.crow_indices()[:-1],
            mode="sum",
            per_sample_weights=x.values(),
        )
        return product + self.bias


def linear(d: int, q: int) -> nn.Module:
    """Return a linear model.

    Examples
    --------
    >>> linear(3, 2)(torch.zeros(5, 3)).shape
    torch.Size([5, 2])
    """
    return InputLayer(d, q)


def mlp(d: int, q: int, hidden: int = 500) -> nn.Module:
    """Return the network of the field: one hidden layer of 500 rectified units.

    Examples
    --------
    >>> mlp(3, 2)(torch.zeros(5, 3)).shape
    torch.Size([5, 2])
    """
    return nn.Sequential(InputLayer(d, hidden), nn.ReLU(), nn.Linear(hidden, q))
