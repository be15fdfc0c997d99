"""Seeded blocks: the same numbers in every thread, whatever the others draw."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from comes import CandidateClassifier
from comes.generation import case_b
from comes.models import mlp
from comes.risks import BceRisk
from comes.training import TrainOptions, make_optimizer, train
from comes.training.seeding import RANDOM_LOCK, get_random_state, seeded, set_random_state

CPU = torch.device("cpu")
X = np.random.default_rng(0).normal(size=(60, 4)).astype(np.float32)
CANDIDATES = case_b(X[:, :3] > 0, exclude_rate=0.5, seed=0)


def draw(seed: int) -> list[float]:
    """Draw slowly, so that threads would mix."""
    with seeded(seed, CPU):
        return [float(torch.rand(())) for _ in range(5000)]


def train_network(seed: int) -> list[float]:
    """Train a network with dropout; return its weights."""
    with seeded(seed, CPU):
        model = mlp(4, 3, hidden=8, dropout=0.5)
    options = TrainOptions(make_optimizer("sgd", learning_rate=0.1), 15, 10, seed=seed)
    train(model, torch.from_numpy(X), torch.from_numpy(CANDIDATES), BceRisk(), options)
    return torch.cat([p.detach().flatten() for p in model.parameters()]).tolist()


def fit(seed: int) -> list[float]:
    """Fit a classifier with given priors; return its scores."""
    classifier = CandidateClassifier(
        "comes-hl", class_prior=[0.5] * 3, epochs=8, hidden=8, dropout=0.5, random_state=seed
    )
    scores: list[float] = classifier.fit(X, CANDIDATES).decision_function(X).ravel().tolist()
    return scores


@pytest.mark.parametrize("work", [draw, train_network, fit])
@pytest.mark.filterwarnings("ignore::comes.errors.ComesWarning")
def test_threads_find_what_one_thread_finds(work: Callable[[int], Any]) -> None:
    expected = [work(seed) for seed in (0, 1)]
    assert expected[0] != expected[1]
    with ThreadPoolExecutor(2) as pool:
        for _ in range(4):
            assert list(pool.map(work, (0, 1))) == expected


def test_blocks_are_nested_in_one_thread_and_restore_the_random_state() -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    with seeded(1, CPU):
        first = torch.rand(2)
        with seeded(2, CPU):
            torch.rand(7)
        second = torch.rand(2)
    with seeded(1, CPU):
        assert torch.equal(torch.rand(4), torch.cat([first, second]))
    assert torch.equal(torch.rand(3), expected)


def test_a_thread_that_raises_lets_the_next_one_in() -> None:
    def fail() -> None:
        with pytest.raises(ZeroDivisionError), seeded(0, CPU), seeded(1, CPU):
            _ = 1 / 0

    thread = threading.Thread(target=fail)
    thread.start()
    thread.join()
    assert RANDOM_LOCK.acquire(timeout=60)
    RANDOM_LOCK.release()


def test_a_random_state_is_read_and_set() -> None:
    def drawn() -> Tensor:
        return torch.rand(4)

    with seeded(3, CPU):
        state = get_random_state(CPU)
        first = drawn()
        set_random_state(state, CPU)
        assert torch.equal(drawn(), first)
