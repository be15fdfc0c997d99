"""Early stopping: the weights of the epoch with the best score."""

import math
from dataclasses import replace
from typing import Any

from torch import Tensor, nn

from comes.errors import ComesError
from comes.training.history import History
from comes.training.processes import gather_objects
from comes.training.train_options import Validation


class BestWeights:
    """Keeps the weights with the best score so far; does nothing without a validation."""

    def __init__(self, model: nn.Module, validation: Validation | None, is_shared: bool) -> None:
        self._model, self._validation, self._is_shared = model, validation, is_shared
        self._scores: list[float] = []
        self._best, self._epoch, self._waiting = math.inf, 0, 0
        self._weights: dict[str, Tensor] = {}

    def judge_epoch(self) -> bool:
        """Score the weights after an epoch; return whether to stop."""
        if self._validation is None:
            return False
        self._model.eval()
        score = float(self._validation.score())
        if self._is_shared:  # every process decides as the first does
            score = float(gather_objects(score)[0])
        self._model.train()
        self._scores.append(score)
        self._waiting = 0 if score < self._best else self._waiting + 1
        if score <= self._best and math.isfinite(score):  # of equal scores the last
            self._best, self._epoch = score, len(self._scores)
            self._weights = {k: v.clone() for k, v in self._model.state_dict().items()}
        patience = self._validation.patience
        return patience is not None and self._waiting >= patience

    @property
    def last_score(self) -> float | None:
        """The score of the last epoch; None without a validation."""
        return self._scores[-1] if self._scores else None

    def state_dict(self) -> dict[str, Any]:
        """Return what has been seen, for a checkpoint."""
        return {
            "scores": self._scores,
            "best": (self._best, self._epoch, self._waiting),
            "weights": self._weights,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from what a checkpoint holds."""
        self._scores, self._weights = state["scores"], state["weights"]
        self._best, self._epoch, self._waiting = state["best"]

    def restore(self, history: History) -> History:
        """Give the model its best weights; return the history with the scores."""
        if not self._scores:
            return history
        if not self._weights:
            raise ComesError(
                "no epoch had a finite risk on the held-out rows: there may be too few of them, or "
                "none that exclude anything. Train without early stopping, or hold out more."
            )
        self._model.load_state_dict(self._weights)
        return replace(history, validation=self._scores, best_epoch=self._epoch)
