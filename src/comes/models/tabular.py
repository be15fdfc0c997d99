"""Networks for rows: what a row goes through from its features to its scores.

A batch is a dense tensor or, if X is a scipy sparse matrix, a torch CSR tensor (dense on a GPU, if
small). `InputLayer` multiplies either at the cost of its non-zeros, and so does ``nn.Linear``, more
slowly, so your own network works with both. `linear`, `mlp` and `low_rank` are functions of (number
of features, number of labels) that return a module; an `Ensemble` is several `mlp` at once. A
`LabelHead` computes the scores of some labels alone, and a `Stack` is many networks, each with its
own rows.
"""

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from scipy import sparse
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from comes.errors import ComesError

LINEAR_SHARE = 1 / 3  # of a linear model in the scores of an `Ensemble`


class InputLayer(nn.Module):
    """A linear layer for dense and for sparse CSR rows, initialised like ``nn.Linear``.

    The weight has shape (n_features, n_outputs), the transpose of ``nn.Linear``'s: a sparse
    row reads only the weight rows of its non-zeros.

    Parameters
    ----------
    d, n_outputs : int
        Numbers of features and of outputs.

    Examples
    --------
    >>> layer = InputLayer(3, 2)
    >>> rows = as_csr_tensor(sparse.csr_array([[0.0, 2.0, 0.0], [1.0, 0.0, 0.0]], dtype="float32"))
    >>> torch.allclose(layer(rows), layer(rows.to_dense()))
    True
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
        if x.device.type == "cpu":
            product: Tensor = _SparseProduct.apply(x, self.weight, self.bias)  # type: ignore[no-untyped-call]
            return product
        return _multiply(x, self.weight) + self.bias


class _SparseProduct(torch.autograd.Function):
    """CSR rows @ weight + bias; the gradient of ``embedding_bag`` would sort every batch."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        ctx.rows = rows
        return _multiply(rows, weight.detach()).add_(bias)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[None, Tensor, Tensor]:
        rows = ctx.rows
        arrays = (rows.values(), rows.col_indices(), rows.crow_indices())
        by_column = sparse.csr_array(tuple(a.numpy() for a in arrays), shape=rows.shape).tocsc()
        transposed = as_csr_tensor(by_column.T)
        return None, _multiply(transposed, gradient.contiguous()), gradient.sum(dim=0)


def _multiply(rows: Tensor, matrix: Tensor) -> Tensor:
    """Return rows @ matrix; on a CPU this is faster than torch's product of CSR tensors."""
    return F.embedding_bag(
        rows.col_indices(),
        matrix,
        rows.crow_indices(),
        mode="sum",
        per_sample_weights=rows.values(),
        include_last_offset=True,
    )


def as_csr_tensor(X: sparse.csr_array) -> Tensor:
    """Return a scipy CSR matrix as a torch CSR tensor that shares its memory."""
    _silence_beta_warning()
    starts, columns, values = map(torch.from_numpy, (X.indptr, X.indices, X.data))
    return torch.sparse_csr_tensor(starts, columns, values, X.shape, check_invariants=False)


@cache
def _silence_beta_warning() -> None:
    """Make the first CSR tensor: torch warns once that they are in beta."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        torch.sparse_csr_tensor([0, 0], [], [], size=(1, 1), check_invariants=False)


class Dropout(nn.Dropout):
    """``nn.Dropout``, with masks that a CPU draws in a quarter of the time.

    torch draws a number for every unit; here 64 random bits serve four. The probability is rounded
    to a multiple of 1/65536, and the scale of the remaining units fits the rounded one.

    Parameters
    ----------
    p : float
        Probability of a unit to be zeroed.

    Examples
    --------
    >>> Dropout(0.5)(torch.ones(1000)).unique()
    tensor([0., 2.])
    >>> Dropout(0.5).eval()(torch.ones(3))
    tensor([1., 1., 1.])
    """

    def forward(self, x: Tensor) -> Tensor:
        """Return x with some entries zeroed and the others scaled up; in evaluation mode x."""
        n_dropped = round(2**16 * self.p)  # of 2**16 equally likely numbers
        if not self.training or x.device.type != "cpu" or n_dropped in (0, 2**16):
            return super().forward(x)
        bits = torch.empty(math.ceil(x.numel() / 4), dtype=torch.int64).random_(-(2**63), None)
        numbers = bits.view(torch.int16)[: x.numel()].view(x.shape)  # from -2**15 to 2**15 - 1
        mask = (numbers >= n_dropped - 2**15).to(x.dtype)
        return x * (mask * (2**16 / (2**16 - n_dropped)))


def linear(d: int, q: int) -> nn.Module:
    """Return a linear model.

    Parameters
    ----------
    d, q : int
        Numbers of features and of labels.

    Examples
    --------
    >>> linear(3, 2)(torch.zeros(5, 3)).shape
    torch.Size([5, 2])
    """
    return InputLayer(d, q)


def mlp(d: int, q: int, hidden: int = 500, *, dropout: float = 0.0) -> nn.Module:
    """Return the network that this field compares methods with: one hidden layer of 500 ReLUs.

    Parameters
    ----------
    d, q : int
        Numbers of features and of labels.
    hidden : int
        Number of hidden units.
    dropout : float
        Probability of a hidden unit to be zeroed in a training step.

    Examples
    --------
    >>> mlp(3, 2)(torch.zeros(5, 3)).shape
    torch.Size([5, 2])
    """
    drop = [Dropout(dropout)] if dropout else []
    first = [InputLayer(d, hidden), nn.ReLU(inplace=True)]
    return nn.Sequential(*first, *drop, nn.Linear(hidden, q))


def low_rank(d: int, q: int, rank: int = 500, *, dropout: float = 0.0) -> nn.Module:
    """Return a linear model whose weights have a low rank: `mlp` without its ReLU.

    For very many labels and sparse words, where a plain linear model would have d times q weights.

    Parameters
    ----------
    d, q : int
        Numbers of features and of labels.
    rank : int
        Number of inner units.
    dropout : float
        Probability of an inner unit to be zeroed in a training step.

    Examples
    --------
    >>> low_rank(3, 2, rank=1)(torch.zeros(5, 3)).shape
    torch.Size([5, 2])
    """
    drop = [Dropout(dropout)] if dropout else []
    return nn.Sequential(InputLayer(d, rank), *drop, nn.Linear(rank, q))


class Ensemble(nn.Module):
    """Several `mlp` networks on the same rows, and perhaps a linear model beside them.

    Their first layers are one wide layer, so that the rows are read once. In training mode the
    scores of each network come out, (n, n_networks, q); in evaluation mode their mean, (n, q), of
    which a linear model makes a third. It is not trained with the networks: `comes.training.linear`
    sets its weights.

    Parameters
    ----------
    d, q : int
        Numbers of features and of labels.
    hidden : int
        Hidden units of each network.
    dropout : float
        Probability of a hidden unit to be zeroed in a training step.
    n_networks : int
        Number of networks.
    has_linear : bool
        Whether there is a linear model.

    Examples
    --------
    >>> networks = Ensemble(3, 2, hidden=8, n_networks=4)
    >>> networks(torch.zeros(5, 3)).shape, networks.eval()(torch.zeros(5, 3)).shape
    (torch.Size([5, 4, 2]), torch.Size([5, 2]))
    """

    def __init__(
        self,
        d: int,
        q: int,
        hidden: int = 500,
        *,
        dropout: float = 0.0,
        n_networks: int = 4,
        has_linear: bool = False,
    ) -> None:
        super().__init__()
        self.inputs = InputLayer(d, n_networks * hidden)
        self.dropout = Dropout(dropout)
        bound = 1 / math.sqrt(hidden)
        self.weight = nn.Parameter(torch.empty(n_networks, hidden, q).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(n_networks, 1, q).uniform_(-bound, bound))
        self.linear = InputLayer(d, q).requires_grad_(False) if has_linear else None
        if self.linear is not None:
            for part in self.linear.parameters():
                nn.init.zeros_(part)

    def forward(self, x: Tensor) -> Tensor:
        """Return the scores of each network in training mode, else the mean."""
        scores = torch.baddbmm(self.bias, self.units(x), self.weight).transpose(0, 1)
        if self.training:
            return scores
        mean = scores.mean(dim=1)
        return mean if self.linear is None else mean.lerp(self.linear(x), LINEAR_SHARE)

    def units(self, x: Tensor) -> Tensor:
        """Return the hidden units of each network, (n_networks, n, hidden)."""
        n_networks, hidden, _ = self.weight.shape
        units: Tensor = self.dropout(self.inputs(x).relu())
        return units.view(-1, n_networks, hidden).transpose(0, 1)


class EnsembleRisk(nn.Module):
    """The mean over the networks of an `Ensemble` of the risk of each."""

    def __init__(self, risk: Callable[..., Tensor]) -> None:
        super().__init__()
        self.risk = risk

    @property
    def costs_unasked(self) -> bool:
        """Whether pairs that nobody was asked about count."""
        return getattr(self.risk, "costs_unasked", False)

    def select_labels(self, labels: slice | Tensor) -> "EnsembleRisk":
        """Return the risk of some labels, by index."""
        return EnsembleRisk(self.risk.select_labels(labels))  # type: ignore[attr-defined]

    def forward(self, scores: Tensor, *targets: Tensor) -> Tensor:
        """Return the mean risk of scores (n, n_networks, q), or the risk of mean scores (n, q)."""
        if scores.ndim == 2:
            return self.risk(scores, *targets)
        return torch.stack([self.risk(s, *targets) for s in scores.unbind(dim=1)]).mean()


@dataclass(frozen=True, eq=False)
class LabelHead:
    """A network as hidden units and the linear layer above them, which can score some labels."""

    units: Callable[[Tensor], Tensor]  # rows -> (n_networks, n, hidden)
    weight: Tensor  # as the network stores it; `by_label` has one shape for all
    bias: Tensor  # n_networks * q numbers

    @property
    def n_labels(self) -> int:
        """Number of labels."""
        return int(self.bias.shape[-1])

    def by_label(self, values: Tensor) -> Tensor:
        """Return the weight, or its gradient, as a view of shape (n_networks, q, hidden)."""
        return values[None] if values.ndim == 2 else values.mT

    def score(self, units: Tensor, labels: slice | Tensor) -> Tensor:
        """Return the scores of some labels, by index, (n_networks, n, number of them)."""
        weight = self.by_label(self.weight)[:, labels]
        bias = self.bias.view(len(weight), 1, -1)[..., labels]
        return torch.baddbmm(bias, units, weight.mT)


def find_label_head(model: nn.Module) -> LabelHead:
    """Return the last layer of an `Ensemble`, or of a Sequential that ends in ``nn.Linear``."""
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


class Stack(nn.Module):
    """Several networks made by `linear` or `mlp`, of the same shape, as one batched computation.

    Each has its own rows, padded by `pad`: (n_models, n, padded features) gives scores of shape
    (n_models, n, q). The first bias is the weight of a feature that is always 1, and zeros fill up
    to a multiple of 8: fewer passes over memory, and faster products.
    """

    def __init__(self, models: Sequence[nn.Module]) -> None:
        super().__init__()
        layers = [_split_layers(model) for model in models]
        self.d = len(layers[0][0].weight)
        first = torch.stack([torch.cat([i.weight, i.bias[None]]) for i, _ in layers]).detach()
        self.first = nn.Parameter(F.pad(first, (0, 0, 0, -(self.d + 1) % 8)))
        outputs = [output for _, output in layers if output is not None]
        self.is_deep = len(outputs) > 0
        if self.is_deep:
            self.weight = nn.Parameter(torch.stack([o.weight for o in outputs]).detach())
            self.bias = nn.Parameter(torch.stack([o.bias[None] for o in outputs]).detach())

    @staticmethod
    def pad(rows: Tensor) -> Tensor:
        """Append the feature that is always 1, and zeros."""
        with_one = F.pad(rows, (0, 1), value=1.0)
        return F.pad(with_one, (0, -with_one.shape[-1] % 8))

    def forward(self, rows: Tensor) -> Tensor:
        """Return the scores of every network for its own padded rows."""
        if not self.is_deep:
            return torch.bmm(rows, self.first)
        scores: Tensor = _TwoLayers.apply(rows, self.first, self.weight, self.bias)  # type: ignore[no-untyped-call]
        return scores

    @torch.no_grad()
    def copy_to(self, models: Sequence[nn.Module]) -> None:
        """Copy the weights into networks of the same kind as the stacked ones."""
        for which, model in enumerate(models):
            inputs, output = _split_layers(model)
            inputs.weight.copy_(self.first[which, : self.d])
            inputs.bias.copy_(self.first[which, self.d])
            if output is not None:
                output.weight.copy_(self.weight[which])
                output.bias.copy_(self.bias[which, 0])


class _TwoLayers(torch.autograd.Function):
    """relu(rows @ first) @ weight.mT + bias, with fewer passes over memory than autograd needs."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, first: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        hidden = torch.bmm(rows, first).relu_()
        ctx.save_for_backward(rows, hidden, weight)
        return torch.baddbmm(bias, hidden, weight.mT)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        rows, hidden, weight = ctx.saved_tensors
        of_hidden = torch.bmm(gradient, weight)
        torch.ops.aten.threshold_backward.grad_input(of_hidden, hidden, 0, grad_input=of_hidden)
        return (
            None,
            torch.bmm(rows.mT, of_hidden),
            torch.bmm(gradient.mT, hidden),
            gradient.sum(dim=1, keepdim=True),
        )


def _split_layers(model: nn.Module) -> tuple[InputLayer, nn.Linear | None]:
    """Return the layers of a network made by `linear` or `mlp`; raise an error for any other."""
    if isinstance(model, InputLayer):
        return model, None
    match list(model.children()):
        case [InputLayer() as inputs, nn.ReLU(), nn.Linear() as output]:
            return inputs, output
    raise ComesError(
        "only networks made by comes.models.linear and mlp can be trained together; got "
        f"{type(model).__name__}. Train others one by one."
    )
