"""A table with every kind of column, whose labels depend on most of them."""

from typing import Any

import numpy as np
import pandas as pd

WORDS = np.array(
    ["river", "stone", "cloud", "engine", "market", "garden", "piano", "winter", "salt", "copper"]
)
NAMES = ["rough", "warm", "late"]


def make_table(n: int = 400, seed: int = 0) -> tuple[pd.DataFrame, Any]:
    """Return a table of n rows, and the true labels of every row, (n, 3)."""
    rng = np.random.default_rng(seed)
    topic = rng.integers(0, 2, n)
    colour = rng.choice(["red", "green", "blue"], n)
    day = rng.integers(0, 700, n)
    frame = pd.DataFrame(
        {
            "ticket_id": [f"t{k:05d}" for k in range(n)],
            "size": np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n)),
            "stars": rng.integers(1, 6, n),
            "price": [f"{value:,.2f} €" for value in rng.lognormal(7, 1, n)],
            "colour": pd.Series(colour).mask(rng.random(n) < 0.05),
            "street": rng.choice([f"street{k}" for k in range(60)], n),
            "urgent": rng.choice([True, False], n),
            "news": rng.choice(["yes", "no", ""], n),
            "opened": (pd.Timestamp("2024-01-01") + pd.to_timedelta(day, unit="D")).strftime(
                "%d.%m.%Y"
            ),
            "seen": pd.Timestamp("2024-01-01", tz="Europe/Rome") + pd.to_timedelta(day, unit="h"),
            "body": [
                " ".join([*rng.choice(WORDS[5 * t : 5 * t + 5], 5), *rng.choice(WORDS, 5)])
                for t in topic
            ],
            "unit": "piece",
            "notes": None,
        }
    )
    return frame, np.stack([topic == 1, colour == "red", day > 350], axis=1)
