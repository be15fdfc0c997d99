"""A page of predictions: of many pictures, the most confident, the most doubtful, and some more."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from comes.answers.convert import BoolMatrix, as_indicators
from comes.answers.questions import spread_over_labels
from comes.files import expanded, replacing_folder
from comes.report.cards import (
    Card,
    FloatArray,
    Label,
    NamedImages,
    Picture,
    check_page_inputs,
    render_page,
    shrink_image,
    sort_labels,
)
from comes.report.overlays import draw_overlay

Maps = Callable[[Sequence[int], Sequence[int]], Sequence[npt.NDArray[np.floating]]]

GROUPS = {
    "confident": "most confident",
    "doubtful": "most doubtful",
    "random": "drawn at random",
}
BETWEEN = (0.25, 0.75)  # where a probability is doubtful
N_MAPS = 3  # of a card at most


@dataclass(frozen=True)
class Overlay:
    """Where in a picture the evidence for a label is."""

    label: str
    picture: Picture


@dataclass(frozen=True)
class Reasons:
    """Why a picture is shown: for which labels it is among the first, or by chance."""

    confident: list[int] = field(default_factory=list)
    doubtful: list[int] = field(default_factory=list)
    random: list[int] = field(default_factory=list)  # of one entry if so, which is no label


@dataclass(frozen=True)
class ShownPicture:
    """A card, why it is shown, and maps of evidence."""

    card: Card
    reasons: Reasons
    overlays: list[Overlay]

    @property
    def groups(self) -> list[str]:
        """Names of the groups that it belongs to."""
        return [name for name in GROUPS if getattr(self.reasons, name)]

    @property
    def marked(self) -> list[int]:
        """Columns of the labels that a filter by label shows this picture for."""
        chosen = [*self.reasons.confident, *self.reasons.doubtful]
        return list(dict.fromkeys([*self.card.marked, *chosen]))


def write_predictions(
    images: NamedImages,
    label_names: Sequence[str],
    scores: npt.ArrayLike,
    predictions: Any,
    folder: str | Path,
    *,
    maps: Maps | None = None,
    title: str = "Predictions",
    n_examples: int = 120,
    seed: int = 0,
) -> Path:
    """Write a page of new pictures with their predictions, of however many there are.

    Half of the pictures shown are the most confident of every label, a quarter the most doubtful, a
    quarter drawn at random; the table of labels counts all of them.

    Parameters
    ----------
    images : comes.datasets.Images
        Or any sequence of uint8 arrays of shape (height, width, 3) that has ``names``.
    label_names : sequence of n_labels str
    scores : array of shape (n_samples, n_labels)
        Probabilities in [0, 1].
    predictions : bool or 0/1 array of shape (n_samples, n_labels)
    folder : path
        An existing page is replaced; a folder that holds anything else is refused.
    maps : callable (rows, labels) -> sequence of arrays of shape (height, width), optional
        Where in each of these pictures the evidence for the label is, such as `evidence_maps` of
        `comes.estimator`. What is above 0 is drawn over the picture when asked for.
    title : str
        Heading of the page.
    n_examples : int
        How many pictures to show at most.
    seed : int
        Seed of the draw. The same input gives the same bytes.

    Returns
    -------
    page : Path
        ``index.html`` in the folder, which needs nothing else.

    Examples
    --------
    >>> import tempfile
    >>> from PIL import Image
    >>> from comes.datasets import Images
    >>> home = Path(tempfile.mkdtemp())
    >>> Image.new("RGB", (5, 4), "red").save(home / "rose.png")
    >>> images = Images(home, ["rose.png"])
    >>> page = write_predictions(images, ["rose", "sky"], [[0.9, 0.2]], [[1, 0]], home / "page")
    >>> page.name, "most confident" in page.read_text(encoding="utf-8")
    ('index.html', True)
    """
    scores = np.asarray(scores, dtype=float)
    predictions = as_indicators(predictions, "predictions")
    given: dict[str, BoolMatrix | None] = {"predictions": predictions}
    check_page_inputs(images.names, label_names, scores, given, n_examples)
    reasons = pick_pictures(scores, n_examples, seed)
    evidence = {} if maps is None else _find_evidence(maps, reasons, scores)
    shown = []
    for row, why in reasons.items():
        labels = _list_labels(label_names, scores[row], predictions[row])
        card = Card(row, images.names[row], shrink_image(images, row), labels)
        shown.append(ShownPicture(card, why, _draw_maps(card, evidence.get(row, {}), label_names)))
    page = render_page(
        "predicted.html.jinja",
        title=title,
        n_rows=len(scores),
        shown=shown,
        label_names=label_names,
        columns=_count_labels(scores, predictions),
        between=BETWEEN,
        has_maps=maps is not None,
        filters=[
            (name, words, sum(name in one.groups for one in shown))
            for name, words in GROUPS.items()
        ],
    )
    with replacing_folder(folder, ("index.html",)) as temporary:
        (temporary / "index.html").write_text(page, encoding="utf-8", errors="replace")
    return expanded(folder) / "index.html"


def pick_pictures(scores: FloatArray, n_examples: int, seed: int) -> dict[int, Reasons]:
    """Return which rows to show, at most so many, and why, in the order of the page."""
    n_doubtful = n_random = n_examples // 4
    reasons: dict[int, Reasons] = {}
    confident = spread_over_labels(scores, n_examples - n_doubtful - n_random)
    doubtful = spread_over_labels(-np.abs(scores - 0.5), n_doubtful)
    for name, (row, label) in {"confident": confident, "doubtful": doubtful}.items():
        by_label = np.argsort(label, kind="stable")
        for one, of in zip(row[by_label].tolist(), label[by_label].tolist(), strict=True):
            getattr(reasons.setdefault(one, Reasons()), name).append(of)
    drawn = np.random.default_rng(seed).choice(len(scores), min(n_random, len(scores)), False)
    for row in sorted(drawn.tolist()):
        reasons.setdefault(row, Reasons()).random.append(1)
    return reasons


def _list_labels(
    label_names: Sequence[str], scores: FloatArray, predicted: npt.NDArray[np.bool_]
) -> list[Label]:
    """Return the labels of a row, the highest score first."""
    columns = zip(label_names, scores.tolist(), predicted.tolist(), strict=True)
    return sort_labels([Label(*values, number=k) for k, values in enumerate(columns)])


def _count_labels(scores: FloatArray, predictions: BoolMatrix) -> dict[str, list[str]]:
    """Return columns of counts and shares of every label, over all rows."""
    low, high = BETWEEN
    doubtful = ((scores > low) & (scores < high)).sum(axis=0)
    return {
        "predicted": [str(count) for count in predictions.sum(axis=0)],
        "share": [f"{share:.1%}" for share in predictions.mean(axis=0)],
        "mean probability": [f"{mean:.3f}" for mean in scores.mean(axis=0)],
        "doubtful": [str(count) for count in doubtful],
    }


def _find_evidence(
    maps: Maps, reasons: dict[int, Reasons], scores: FloatArray
) -> dict[int, dict[int, npt.NDArray[np.floating]]]:
    """Return maps by row and label: of what a picture is shown for, and of its highest score."""
    wanted = []
    for row, why in reasons.items():
        labels = dict.fromkeys([*why.confident, *why.doubtful, int(scores[row].argmax())])
        wanted += [(row, label) for label in list(labels)[:N_MAPS]]
    found: dict[int, dict[int, npt.NDArray[np.floating]]] = {}
    every = maps([row for row, _ in wanted], [label for _, label in wanted])
    for (row, label), evidence in zip(wanted, every, strict=True):
        found.setdefault(row, {})[label] = evidence
    return found


def _draw_maps(
    card: Card, evidence: dict[int, npt.NDArray[np.floating]], label_names: Sequence[str]
) -> list[Overlay]:
    """Return the maps of a picture that have something to show."""
    if card.picture is None:
        return []
    size = card.picture.width, card.picture.height
    drawn = {label: draw_overlay(values, size) for label, values in evidence.items()}
    return [Overlay(label_names[k], picture) for k, picture in drawn.items() if picture is not None]
