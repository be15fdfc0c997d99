"""The inputs of the goldens: drawn with NumPy alone, so that no change of comes can move them."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
LABELS = ["sky", "sea", "sand", "sun"]
WORDS = np.array(
    ["river", "stone", "cloud", "engine", "market", "garden", "piano", "winter", "salt", "copper"]
)


def rows(n: int = 240, d: int = 6, q: int = 4, seed: int = 0) -> tuple[Floats, Bools]:
    """Return features and true labels that depend on them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    scores = X @ rng.normal(size=(d, q)) - 0.8 + 0.5 * rng.normal(size=(n, q))
    return X, scores > 0


def candidates(relevant: Bools, exclude_rate: float = 0.5, seed: int = 1) -> Bools:
    """Return candidate labels: an irrelevant label is excluded with this probability."""
    return relevant | (np.random.default_rng(seed).random(relevant.shape) >= exclude_rate)


def answers(relevant: Bools, seed: int = 2) -> dict[str, Bools]:
    """Return answers about two thirds of the pairs: no, yes and maybe."""
    rng = np.random.default_rng(seed)
    asked, sure = rng.random(relevant.shape) < 0.67, rng.random(relevant.shape) < 0.75
    return {
        "no": asked & sure & ~relevant,
        "yes": asked & sure & relevant,
        "maybe": asked & ~sure,
    }


def ticks(relevant: Bools, seed: int = 3) -> Bools:
    """Return ticked labels: a relevant label is ticked with probability 0.6."""
    return relevant & (np.random.default_rng(seed).random(relevant.shape) < 0.6)


def annotators(relevant: Bools, seed: int = 4) -> pd.DataFrame:
    """Return the answers of three people about half of the pairs each, in long form."""
    rng = np.random.default_rng(seed)
    parts = []
    for person, rate in (("ann", 0.9), ("ben", 0.75), ("cem", 0.6)):
        row, label = np.nonzero(rng.random(relevant.shape) < 0.5)
        truth = np.where(relevant[row, label], "yes", "no")
        words = np.where(rng.random(len(row)) < rate, truth, "maybe")
        parts.append(pd.DataFrame({"row": row, "label": label, "answer": words, "person": person}))
    return pd.concat(parts, ignore_index=True)


def counts(n: int = 300, d: int = 120, q: int = 40, seed: int = 5) -> tuple[Floats, Bools]:
    """Return rows of word counts, most of them 0, and rare labels."""
    rng = np.random.default_rng(seed)
    X = rng.poisson(0.05, size=(n, d)).astype(np.float64)
    scores = X @ rng.normal(size=(d, q)) + 0.5 * rng.normal(size=(n, q))
    return X, scores > 1.5


def table(n: int = 200, seed: int = 6) -> tuple[pd.DataFrame, Bools]:
    """Return a table with numbers, categories, dates, texts and gaps, and three true labels."""
    rng = np.random.default_rng(seed)
    topic = rng.integers(0, 2, n)
    colour = rng.choice(["red", "green", "blue"], n)
    day = rng.integers(0, 700, n)
    frame = pd.DataFrame(
        {
            "ticket_id": [f"t{k:05d}" for k in range(n)],
            "size": np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n).round(3)),
            "stars": rng.integers(1, 6, n),
            "colour": pd.Series(colour).mask(rng.random(n) < 0.05),
            "urgent": rng.choice([True, False], n),
            "opened": (pd.Timestamp("2024-01-01") + pd.to_timedelta(day, unit="D")).strftime(
                "%Y-%m-%d"
            ),
            "body": [
                " ".join([*rng.choice(WORDS[5 * t : 5 * t + 5], 5), *rng.choice(WORDS, 5)])
                for t in topic
            ],
        }
    )
    return frame, np.stack([topic == 1, colour == "red", day > 350], axis=1)


def pictures(n: int = 60, size: int = 32, seed: int = 7) -> tuple[npt.NDArray[np.uint8], Bools]:
    """Return pictures, and where each has a bar of the colour of its place."""
    rng = np.random.default_rng(seed)
    relevant = rng.random((n, 3)) < 0.4
    pixels = rng.integers(0, 60, (n, size, size, 3)).astype(np.uint8)
    for label in range(3):
        pixels[relevant[:, label], :, 10 * label : 10 * label + 10, label] += 150
    return pixels, relevant


def scores(relevant: Bools, seed: int = 8) -> Floats:
    """Return noisy scores of true labels."""
    noise = np.random.default_rng(seed).normal(size=relevant.shape)
    return np.where(relevant, 0.8, -0.9) + noise


def labels_of_kind(kind: str, relevant: Bools) -> Any:
    """Return labels of a kind, drawn from the truth."""
    make: dict[str, Callable[[Bools], Any]] = {
        "candidates": candidates,
        "answers": answers,
        "ticks": ticks,
        "annotators": annotators,
    }
    return make[kind](relevant)
