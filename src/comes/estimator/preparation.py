"""A training that is ready to run: everything before the first step is done."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from comes.answers import Answers
from comes.errors import ComesError
from comes.methods import Method
from comes.priors import CleanSample
from comes.risks.checks import value_or_nan
from comes.risks.pair_sums import choose_pair_sums
from comes.training import History, TrainOptions, Validation, predict_scores, train
from comes.training.checkpoint import Checkpoint
from comes.training.gradients import Risk
from comes.training.label_chunks import LabelChunks
from comes.training.loop import Rows
from comes.training.pixels import PixelRows

Scores = npt.NDArray[np.float64]


@dataclass(frozen=True)
class HeldOut:
    """Rows that are held out of the training to judge it."""

    X: Rows
    answers: Answers
    seen: Any  # what the risk sees of the answers: a tensor (n, q), or SparseTargetRows
    risk: Risk  # with the counts of these rows
    patience: int | None  # epochs to wait for a better one

    @torch.no_grad()
    def compute_risk(self, module: nn.Module, precision: torch.dtype | None) -> float:
        """Return the risk of a network on these rows."""
        if isinstance(self.risk, LabelChunks):
            assert not isinstance(self.X, PixelRows)
            module.eval()
            rows = torch.arange(len(self.X))
            x, seen = self.X[rows], self.seen.index_select(0, rows)
            return value_or_nan(partial(self.risk.compute_risk, module), x, seen)
        scores = predict_scores(module, self.X, precision=precision)
        return value_or_nan(self.risk, scores, self.seen)


@dataclass(frozen=True)
class Training:
    """A network with its initial weights, and everything that it is trained with."""

    method: Method
    module: nn.Module
    X: Rows
    seen: Any  # what the risk sees of the answers: a tensor (n, q), or SparseTargetRows
    risk: Risk
    options: TrainOptions
    is_ours: bool  # network, risk and optimiser are from comes: none reads from the device
    raw: tuple[Any, Answers]  # features and answers of all rows
    held_out: HeldOut | None = None
    checkpoint: Checkpoint | None = None
    is_shared: bool = False  # by the processes that have joined
    clean: CleanSample | None = None  # rows whose true labels are known; they are not trained on
    weight: Tensor | None = None  # of every row, (n,)
    counts: Any = None  # what the risk is divided by
    cross_score: Callable[[], Scores] | None = None  # scores of rows by trainings without them

    def run(self, *, return_on_interrupt: bool = True) -> History:
        """Train the network, in place; keep the weights that the held-out rows judge best."""
        graph, held_out, validation = self.can_be_a_graph, self.held_out, None
        if held_out is not None:
            score = partial(held_out.compute_risk, self.module, self.options.precision)
            validation = Validation(score, held_out.patience)
        return train(
            self.module,
            self.X,
            self.seen,
            self.risk,
            replace(self.options, graph=graph, return_on_interrupt=return_on_interrupt),
            sample_weight=self.weight,
            validation=validation,
            checkpoint=self.checkpoint,
            distributed=self.is_shared,
        )

    @property
    def can_be_a_graph(self) -> bool:
        """Whether no step reads a number from a GPU, as sums over pairs of many labels do."""
        way = choose_pair_sums(1, self.seen.shape[1], torch.device("cuda"))
        return self.is_ours and not (self.method.is_over_pairs and way == "in linear time")

    @property
    def has_large_risk(self) -> bool:
        """Whether the risk of one batch is large enough to be computed on its own."""
        n, q = self.seen.shape
        way = choose_pair_sums(min(n, self.options.batch_size), q, self.seen.device)
        return self.method.is_over_pairs and way != "whole"


def split_rows(
    n: int, share: float, seed: int
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Return the rows to train on and those to hold out."""
    n_held = round(share * n)
    if not 1 <= n_held < n:
        raise ComesError(
            f"early stopping holds out a share of {share:g} of the rows, which is {n_held} of {n}; "
            "set validation_share so that some rows are held out and some are not."
        )
    order = np.random.default_rng(seed).permutation(n)
    return np.sort(order[n_held:]), np.sort(order[:n_held])
