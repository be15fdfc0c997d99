"""A fit of rows that was stopped goes on where its state was kept."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy import sparse
from torch import Tensor, nn

from comes import CandidateClassifier
from comes.errors import ComesError
from comes.generation import case_b
from comes.training import TrainedEpoch

X = np.random.default_rng(0).normal(size=(200, 4))
CANDIDATES = case_b(X[:, :3] > 0.3, exclude_rate=0.5)
FEW = {"epochs": 6, "batch_size": 32, "class_prior": [0.4] * 3, "random_state": 0}


class StoppedError(Exception):
    pass


def stop_after(epochs: int) -> Any:
    def stop(done: TrainedEpoch) -> None:
        if done.epoch == epochs:
            raise StoppedError

    return stop


def weights(classifier: CandidateClassifier) -> Tensor:
    return torch.cat([p.detach().flatten() for p in classifier.module_.parameters()])


def fit(path: Path | None, *, x: Any = X, every: float = 0, **settings: Any) -> CandidateClassifier:
    classifier = CandidateClassifier(**{**FEW, **settings})
    return classifier.fit(x, CANDIDATES, checkpoint=path, checkpoint_every=every)


@pytest.mark.parametrize("x", [X, sparse.csr_array(X * (X > 0))])
def test_a_fit_that_was_stopped_goes_on_to_the_same_weights(x: Any, tmp_path: Path) -> None:
    path = tmp_path / "fit.checkpoint"
    with pytest.raises(StoppedError):
        fit(path, x=x, callbacks=stop_after(4))
    seen: list[int] = []
    resumed = fit(path, x=x, callbacks=lambda done: seen.append(done.epoch))
    assert seen == [5, 6]
    through = fit(None, x=x)
    assert torch.equal(weights(resumed), weights(through))
    assert resumed.history_.risk == through.history_.risk


def test_a_short_fit_keeps_no_state(tmp_path: Path) -> None:
    fit(tmp_path / "fit.checkpoint", every=300)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "change",
    [{"learning_rate": 0.1}, {"random_state": 1}, {"x": X + 1}, {"hidden": 9}, {"epochs": 7}],
)
def test_the_state_of_another_fit_is_refused(change: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "fit.checkpoint"
    fit(path)
    with pytest.raises(ComesError, match="belongs to another training"):
        fit(path, **change)


def test_what_decides_nothing_may_change(tmp_path: Path) -> None:
    path = tmp_path / "fit.checkpoint"
    first = fit(path)
    again = fit(path, verbose=1, threshold="zero", output="pandas")
    assert torch.equal(weights(again), weights(first))


def test_weights_of_a_network_of_ones_own_are_part_of_what_is_resumed(tmp_path: Path) -> None:
    path, model = tmp_path / "fit.checkpoint", nn.Linear(4, 3)
    fit(path, model=model)
    fit(path, model=model)
    with pytest.raises(ComesError, match="belongs to another training"):
        fit(path, model=nn.Linear(4, 3))
