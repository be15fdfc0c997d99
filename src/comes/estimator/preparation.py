"""What a training takes, when all that comes before it is done."""

from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from comes.estimator.methods import Method
from comes.risks.pairs import DIFFERENCES_AT_ONCE, MANY_LABELS
from comes.risks.smooth_pairs import limit
from comes.training import History, Risk, SparseRows, train


@dataclass(frozen=True)
class Training:
    """A network with its initial weights, and all that it is trained with."""

    method: Method
    module: nn.Module
    X: Tensor | SparseRows
    candidates: Tensor
    risk: Risk
    seed: int
    is_ours: bool  # network, risk and optimiser are ours, and known to need no reading of numbers
    options: dict[str, Any]  # of `train` and `train_together` alike

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
            **self.options,
        )

    @property
    def can_be_a_graph(self) -> bool:
        """Whether no step reads a number from a GPU, as sums over pairs of many labels do."""
        many = self.candidates.shape[1] >= MANY_LABELS["cuda"]
        return self.is_ours and not (self.method.unit == "pairs" and many)

    @property
    def has_large_risk(self) -> bool:
        """Whether the risk of one batch is large enough to be computed for itself."""
        n, q = self.candidates.shape
        pairs = min(n, self.options["batch_size"]) * q * q
        large = pairs > limit(DIFFERENCES_AT_ONCE, self.candidates)
        return self.method.unit == "pairs" and (large or q >= limit(MANY_LABELS, self.candidates))
