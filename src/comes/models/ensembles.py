"""Several networks for rows that are trained at once and whose scores are averaged."""

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from comes.models.tabular import Dropout, InputLayer


class Ensemble(nn.Module):
    """Several `mlp` networks on the same rows.

    Their first layers are one wide layer, so that the rows are read once. In training mode the
    scores of each network come out, (n, n_networks, q), for `OfEachNetwork`; in evaluation mode
    their mean, (n, q).

    Parameters
    ----------
    d, q : int
        Numbers of features and of labels.
    hidden : int
        Hidden units of each network.
    dropout : float
        Share of the hidden units that are left out of every step.
    n_networks : int

    Examples
    --------
    >>> networks = Ensemble(3, 2, hidden=8, n_networks=4)
    >>> networks(torch.zeros(5, 3)).shape, networks.eval()(torch.zeros(5, 3)).shape
    (torch.Size([5, 4, 2]), torch.Size([5, 2]))
    """

    def __init__(
        self, d: int, q: int, hidden: int = 500, *, dropout: float = 0.0, n_networks: int = 4
    ) -> None:
        super().__init__()
        self.inputs = InputLayer(d, n_networks * hidden)
        self.dropout = Dropout(dropout)
        bound = 1 / math.sqrt(hidden)
        self.weight = nn.Parameter(torch.empty(n_networks, hidden, q).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(n_networks, 1, q).uniform_(-bound, bound))

    def forward(self, x: Tensor) -> Tensor:
        """Return the scores of each network in training mode, else their mean."""
        scores = torch.baddbmm(self.bias, self.units(x), self.weight).transpose(0, 1)
        return scores if self.training else scores.mean(dim=1)

    def units(self, x: Tensor) -> Tensor:
        """Return the hidden units of each network, (n_networks, n, hidden)."""
        n_networks, hidden, _ = self.weight.shape
        units: Tensor = self.dropout(self.inputs(x).relu())
        return units.view(-1, n_networks, hidden).transpose(0, 1)


class OfEachNetwork(nn.Module):
    """The mean, over the networks of an `Ensemble`, of the risk of each; in evaluation mode theirs.

    Parameters
    ----------
    risk : module or function (scores of shape (n, q), candidates, ...) -> scalar tensor

    Examples
    --------
    >>> from comes.risks import BceRisk
    >>> scores, candidates = torch.randn(6, 4, 3), torch.ones(6, 3, dtype=torch.bool)
    >>> own = [BceRisk()(scores[:, k], candidates) for k in range(4)]
    >>> torch.allclose(OfEachNetwork(BceRisk())(scores, candidates), sum(own) / 4)
    True
    """

    def __init__(self, risk: Callable[..., Tensor]) -> None:
        super().__init__()
        self.risk = risk

    @property
    def costs_unasked(self) -> bool:
        """Whether pairs that nobody was asked about count."""
        return getattr(self.risk, "costs_unasked", False)

    def select_labels(self, labels: slice | Tensor) -> "OfEachNetwork":
        """Return the risk of some labels, by place."""
        return OfEachNetwork(self.risk.select_labels(labels))  # type: ignore[attr-defined]

    def forward(self, scores: Tensor, *others: Tensor) -> Tensor:
        """Return the mean risk of scores of shape (n, n_networks, q), or the risk of (n, q).

        The candidates, and the weights of rows if there are any, are the same for all.
        """
        if scores.ndim == 2:
            return self.risk(scores, *others)
        return torch.stack([self.risk(own, *others) for own in scores.unbind(dim=1)]).mean()
