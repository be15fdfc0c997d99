"""Networks for rows: functions of (number of features, number of labels) that return a module.

A network maps rows to scores. Its input is a dense tensor or, if X is a scipy sparse matrix, a
torch CSR tensor (dense on a GPU, if small). `InputLayer` multiplies either at the cost of its
non-zeros, and so does ``nn.Linear``, more slowly, so your own network works with both.
"""

import math
import warnings
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import torch
from scipy import sparse
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from comes.errors import ComesError


class InputLayer(nn.Module):
    """A linear layer for dense and for sparse CSR rows, initialised like ``nn.Linear``.

    The weight has shape (n_features, n_outputs), the transpose of ``nn.Linear``'s: a sparse
    row reads only the weight rows of its non-zeros.

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
    """CSR rows times a dense matrix, plus a bias; the gradient multiplies by the transposed rows.

    The gradient of ``embedding_bag`` would sort the columns of every batch.
    """

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
    """Return a scipy CSR matrix as a torch CSR tensor that shares its memory.

    Examples
    --------
    >>> as_csr_tensor(sparse.csr_array([[0.0, 2.0], [1.0, 0.0]])).to_dense()
    tensor([[0., 2.],
            [1., 0.]], dtype=torch.float64)
    """
    _silence_beta_warning()
    starts, columns, values = map(torch.from_numpy, (X.indptr, X.indices, X.data))
    return torch.sparse_csr_tensor(starts, columns, values, X.shape, check_invariants=False)


@cache
def _silence_beta_warning() -> None:
    """Make the first CSR tensor, of which torch warns, once, that they are in beta."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        torch.sparse_csr_tensor([0, 0], [], [], size=(1, 1), check_invariants=False)


class Dropout(nn.Dropout):
    """``nn.Dropout``, with masks that a CPU draws in a quarter of the time.

    torch draws a number for every unit; here 64 random bits serve four. The share that is left out
    is rounded to 1/65536, and what remains is divided by what is then kept.

    Where several processes share a batch, ``share`` draws for the whole batch and takes the rows of
    this process, so that what is left out does not depend on how many there are.

    Examples
    --------
    >>> Dropout(0.5)(torch.ones(1000)).unique()
    tensor([0., 2.])
    >>> Dropout(0.5).eval()(torch.ones(3))
    tensor([1., 1., 1.])
    """

    # A function of n that draws for n rows -> what it drew for the rows of this process.
    share: Callable[[Callable[[int], Tensor]], Tensor] | None = None

    def forward(self, x: Tensor) -> Tensor:
        """Return x with some entries 0 and the others larger; in evaluation mode x."""
        if self.share is None or not self.training:
            return self._leave_out(x)
        return x * self.share(lambda n: self._leave_out(x.new_ones(n, *x.shape[1:])))

    def _leave_out(self, x: Tensor) -> Tensor:
        """Return x with some entries 0 and the others larger, by torch's random numbers."""
        left_out = round(2**16 * self.p)
        if not self.training or x.device.type != "cpu" or left_out in (0, 2**16):
            return super().forward(x)
        drawn = torch.empty(math.ceil(x.numel() / 4), dtype=torch.int64).random_(-(2**63), None)
        of_each = drawn.view(torch.int16)[: x.numel()].view(x.shape)  # from -2**15 to 2**15 - 1
        kept = (of_each >= left_out - 2**15).to(x.dtype)
        return x * (kept * (2**16 / (2**16 - left_out)))


def linear(d: int, q: int) -> nn.Module:
    """Return a linear model.

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
    dropout : float
        Share of the hidden units that are left out of every step.

    Examples
    --------
    >>> mlp(3, 2)(torch.zeros(5, 3)).shape
    torch.Size([5, 2])
    """
    hidden_layer = [InputLayer(d, hidden), nn.ReLU(inplace=True)]
    left_out = [Dropout(dropout)] if dropout else []
    return nn.Sequential(*hidden_layer, *left_out, nn.Linear(hidden, q))


def low_rank(d: int, q: int, rank: int = 500, *, dropout: float = 0.0) -> nn.Module:
    """Return a linear model whose weights have a low rank: `mlp` without its ReLU.

    For very many labels and sparse words, where a plain linear model would have d times q weights.

    Parameters
    ----------
    d, q : int
        Numbers of features and of labels.
    rank : int
    dropout : float
        Share of the inner units that are left out of every step.

    Examples
    --------
    >>> low_rank(3, 2, rank=1)(torch.zeros(5, 3)).shape
    torch.Size([5, 2])
    """
    left_out = [Dropout(dropout)] if dropout else []
    return nn.Sequential(InputLayer(d, rank), *left_out, nn.Linear(rank, q))


class Stack(nn.Module):
    """Several networks made by `linear` or `mlp`, of the same shape, as one batched computation.

    Each has its own rows, padded by `pad`: (n_models, n, padded features) gives scores of shape
    (n_models, n, n_labels). The first bias is the weight of a feature that is always 1, and zeros
    fill up to a multiple of 8: fewer passes over memory, and faster products.

    Parameters
    ----------
    models : sequence of modules

    Examples
    --------
    >>> models = [mlp(3, 2), mlp(3, 2)]
    >>> rows = torch.ones(2, 5, 3)  # five rows for each
    >>> scores = Stack(models)(Stack.pad(rows))
    >>> torch.allclose(scores[1], models[1](rows[1]), atol=1e-6)
    True
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
