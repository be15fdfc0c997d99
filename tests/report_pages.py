"""Pages of reports on a few pictures and rows, for tests of what they say and of how they look."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from PIL import Image

from comes.answers import Answers
from comes.datasets import Images
from comes.label_metrics import list_qualities, measure_labels
from comes.report import write_model_page

LABELS = ["sky", "sea", "cat", "dog", "car", "bus", "tree"]
SCORES = np.array(
    [
        [0.91, 0.40, 0.30, 0.20, 0.10, 0.05, 0.02],
        [0.10, 0.80, 0.75, 0.20, 0.15, 0.05, 0.62],
        [0.30, 0.25, 0.20, 0.15, 0.10, 0.05, 0.02],
    ]
)
PREDICTIONS = SCORES > 0.5
CANDIDATES = np.array([[1, 1, 0, 1, 1, 1, 1], [1, 1, 0, 1, 1, 1, 1], [1, 1, 1, 1, 1, 1, 1]])
RELEVANT = np.array([[1, 0, 0, 0, 0, 0, 0], [0, 1, 0, 0, 0, 0, 1], [0, 0, 0, 0, 0, 0, 1]])
KNOWN: dict[str, Any] = {
    "answers": Answers.from_candidates(CANDIDATES),
    "relevant": RELEVANT,
}


def save_pictures(folder: Path, names: Sequence[str], size: tuple[int, int] = (40, 30)) -> Images:
    """Write pictures of one colour each; return them."""
    folder.mkdir(exist_ok=True)
    for k, name in enumerate(names):
        colour = (50 * k % 256, 120, 200 - 50 * k % 200)
        Image.new("RGB", size, colour).save(folder / name)
    return Images(folder, names)


def write_three(
    folder: Path,
    names: Sequence[str] = ("one.png", "two.png", "three.png"),
    labels: Sequence[str] = LABELS,
    **options: Any,
) -> Path:
    """Write a page of three pictures with `SCORES`; return it."""
    images = save_pictures(folder / "pictures", names)
    return write_model_page(images, labels, SCORES, PREDICTIONS, folder / "page", **options)


class Plain:
    """Many pictures in memory, all alike."""

    def __init__(self, n: int) -> None:
        self.names = [f"{row:06}.png" for row in range(n)]
        self.opened: list[int] = []

    def __getitem__(self, row: int, /) -> npt.NDArray[np.uint8]:
        self.opened.append(row)
        return np.full((30, 40, 3), row % 256, dtype=np.uint8)


def point_left(rows: Any, labels: Any) -> list[npt.NDArray[np.float64]]:
    """Return maps with all evidence in the left column; none for label 2."""
    left = np.zeros((4, 4))
    left[:, 0] = 1
    return [left * (label != 2) for label in labels]


RNG = np.random.default_rng(0)
N_ROWS, ROW_LABELS = 120, ["sky", "<b>sea</b>", "a label with quite a long name", "cat"]
ROW_SCORES = RNG.random((N_ROWS, 4))
ROW_RELEVANT = RNG.random((N_ROWS, 4)) < ROW_SCORES
TABLE = pd.DataFrame(
    {
        "title": [f"text <{k}> & more" for k in range(N_ROWS)],
        "body": ["word " * 400] * N_ROWS,
        "when": pd.to_datetime("2026-01-01") + pd.to_timedelta(range(N_ROWS), unit="D"),
        "red": np.where(np.arange(N_ROWS) % 3 == 0, np.nan, RNG.normal(size=N_ROWS)),
        **{f"x{k}": RNG.normal(size=N_ROWS) for k in range(20)},
    }
)
CODES = np.where(RNG.random((N_ROWS, 4)) < 0.5, np.where(ROW_RELEVANT, 2, 1), 0).astype(np.int8)


def write_rows(folder: Path) -> Path:
    """Write the page about a model of a table; return it."""
    table = measure_labels(ROW_SCORES - 0.5, ROW_RELEVANT)
    counts = {"n_relevant": "relevant", "n_predicted": "predicted"}
    bins = pd.DataFrame({"n_pairs": [5, 5], "predicted": [0.2, 0.7], "relevant": [0.3, 0.7]})
    bins["low"], bins["high"] = [0.25, 0.5], [0.4, 0.9]
    quality = {
        "overall": [("mAP", "0.700", "1 is best")],
        "by_label": list_qualities(table, ROW_LABELS, counts),
        "calibration": bins,
        "notes": ["A note."],
    }
    rates = {"no": np.full(4, 0.8), "yes": np.full(4, 0.7)}
    return write_model_page(
        TABLE,
        ROW_LABELS,
        ROW_SCORES,
        ROW_SCORES > 0.5,
        folder,
        verdict="Two sentences. In all.",
        steps=[("Ask about <more>.", "comes predict 'a b.csv'")],
        facts={"method": "likelihood"},
        quality={"true labels": quality},
        answers=Answers.from_codes(CODES, "answers", ROW_LABELS),
        relevant=ROW_RELEVANT,
        rates=rates,
        n_examples=24,
    )


def rows_of(page: Path) -> dict[str, list[str]]:
    """Return the table of labels, a list of cells by name."""
    text = re.sub(r"<small>.*?</small>", "", page.read_text(encoding="utf-8"))  # hints
    found = re.findall(r"<tr>(.*?)</tr>", text)
    cells = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in found]
    return {re.sub(r"<[^>]*>", "", first): others for first, *others in cells}
