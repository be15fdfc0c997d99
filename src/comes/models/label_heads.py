"""The last layer of a network by itself, so that its labels can be computed in parts."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from comes.errors import ComesError
from comes.models.ensembles import Ensemble


@dataclass(frozen=True, eq=False)
class LabelHead:
    """A network as hidden units and the linear layer above them.

    Parameters
    ----------
    units : callable rows -> tensor of shape (n_networks, n, hidden)
    weight : parameter
        As its network keeps it; `by_label` sees it as (n_networks, n_labels, hidden).
    bias : parameter of n_networks * n_labels numbers

    Examples
    --------
    >>> from comes.models import mlp
    >>> network, x = mlp(3, 10, hidden=4), torch.randn(5, 3)
    >>> head = find_label_head(network)
    >>> torch.allclose(head.score(head.units(x), slice(2, 6))[0], network(x)[:, 2:6])
    True
    """

    units: Callable[[Tensor], Tensor]
    weight: Tensor
    bias: Tensor

    @property
    def n_labels(self) -> int:
        """How many labels the network has."""
        return int(self.bias.shape[-1])

    def by_label(self, values: Tensor) -> Tensor:
        """Return the weight, or its gradient, as a view of shape (n_networks, q, hidden)."""
        return values[None] if values.ndim == 2 else values.mT

    def score(self, units: Tensor, labels: slice | Tensor) -> Tensor:
        """Return the scores of some labels, by place, (n_networks, n, number of them)."""
        weight = self.by_label(self.weight)[:, labels]
        bias = self.bias.view(len(weight), 1, -1)[..., labels]
        return torch.baddbmm(bias, units, weight.mT)


def find_label_head(model: nn.Module) -> LabelHead:
    """Return the last layer of a network and what is below it.

    Parameters
    ----------
    model : module
        An `mlp`, an `Ensemble`, or any ``nn.Sequential`` that ends in ``nn.Linear``.

    Returns
    -------
    head : LabelHead
        Shares the weights of the model.

    Examples
    --------
    >>> find_label_head(nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 10))).n_labels
    10
    """
    if isinstance(model, Ensemble):
        return LabelHead(model.units, model.weight, model.bias)
    if isinstance(model, nn.Sequential) and isinstance(model[-1], nn.Linear):
        below, last = model[:-1], model[-1]
        if last.bias is not None:
            return LabelHead(lambda x: below(x)[None], last.weight, last.bias)
    raise ComesError(
        "very many labels need a network that ends in one linear layer with a bias: model='mlp' "
        "or 'low_rank', or an nn.Sequential that ends in nn.Linear; got "
        f"{type(model).__name__}."
    )
