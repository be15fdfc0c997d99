"""What a training takes, when all that comes before it is done."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from comes.errors import ComesError
from comes.methods import Method
from comes.risks.pairs import DIFFERENCES_AT_ONCE, MANY_LABELS
from comes.risks.smooth_pairs import limit
from comes.training import History, Risk, Rows, predict_scores, train


@dataclass(frozen=True)
class HeldOut:
    """Rows that are kept from training to judge it."""

    X: Rows
    candidates: Tensor
    risk: Risk  # with the counts of these rows
    patience: int | None  # epochs to wait for a better one


@dataclass(frozen=True)
class Training:
    """A network with its initial weights, and all that it is trained with."""

    method: Method
    module: nn.Module
    X: Rows
    candidates: Tensor
    risk: Risk
    seed: int
    is_ours: bool  # network, risk and optimiser are ours, and known to need no reading of numbers
    options: dict[str, Any]  # of `train` and `train_together` alike
    raw: tuple[Any, npt.NDArray[np.bool_]]  # features and candidates of all rows
    held_out: "HeldOut | None" = None  # rows that are not trained on

    def run(self, *, return_on_interrupt: bool = True) -> History:
        """Train alone."""
        return train(
            self.module,
            self.X,
            self.candidates,
            self.risk,
            seed=self.seed,
            graph=self.can_be_a_graph,
            return_on_interrupt=return_on_interrupt,
            validation_score=None if self.held_out is None else self.held_out_risk,
            patience=None if self.held_out is None else self.held_out.patience,
            **self.options,
        )

    def held_out_risk(self) -> float:
        """Return the risk of the network as it is, on the candidates of held-out rows."""
        assert self.held_out is not None
        with torch.no_grad():
            precision = self.options.get("precision")
            scores = predict_scores(self.module, self.held_out.X, precision=precision)
            return float(self.held_out.risk(scores, self.held_out.candidates))

    @property
    def can_be_a_graph(self) -> bool:
        """Whether no step reads a number from a GPU, as sums over pairs of many labels do."""
        many = self.candidates.shape[1] >= MANY_LABELS["cuda"]
        return self.is_ours and not (self.method.is_over_pairs and many)

    @property
    def has_large_risk(self) -> bool:
        """Whether the risk of one batch is large enough to be computed for itself."""
        n, q = self.candidates.shape
        pairs = min(n, self.options["batch_size"]) * q * q
        large = pairs > limit(DIFFERENCES_AT_ONCE, self.candidates)
        return self.method.is_over_pairs and (large or q >= limit(MANY_LABELS, self.candidates))


def split_rows(
    n: int, share: float, seed: int
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Return the rows to train on and those to hold out."""
    n_held = round(share * n)
    if not 1 <= n_held < n:
        raise ComesError(
            f"early stopping holds out a share of {share:g} of the rows, which is {n_held} of {n}; "
            "set validation_share so that there are some on both sides."
        )
    order = np.random.default_rng(seed).permutation(n)
    return np.sort(order[n_held:]), np.sort(order[:n_held])
