"""Cards of pictures, for pages: a small copy, scores as bars, and what was said of the labels."""

import base64
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from PIL import Image

from comes.answers import Answers, State
from comes.answers.convert import BoolMatrix, as_candidates, as_indicators, as_relevant
from comes.errors import ComesError
from comes.files import expanded, replacing_folder
from comes.report.model_page import (
    GROUPS,
    Card,
    FloatArray,
    Label,
    Picture,
    Reasons,
    check_page_inputs,
    count_answers,
    find_agreement,
    pick_pictures,
    render_page,
    say_pairs,
    sort_labels,
    summarise_answers,
)

LONGEST_SIDE = 320  # of a picture, in pixels


class NamedImages(Protocol):
    """What `comes.datasets.Images` is: pictures that are opened one at a time, with names."""

    @property
    def names(self) -> Sequence[str]:
        """Names of the files."""

    def __getitem__(self, row: int, /) -> npt.NDArray[np.uint8]: ...


def shrink_image(images: NamedImages, row: int) -> Picture | None:
    """Return a small copy of an image, or None if it cannot be read."""
    try:
        pixels = images[row]
    except ComesError:
        return None
    if not pixels.size:
        return None
    image = Image.fromarray(pixels)
    image.thumbnail((LONGEST_SIDE, LONGEST_SIDE))
    return as_picture(image, "JPEG", quality=80)


def as_picture(image: Image.Image, form: str, **options: Any) -> Picture:
    """Return an image as a page holds it."""
    file = io.BytesIO()
    image.save(file, form, **options)
    uri = f"data:image/{form.lower()};base64,{base64.b64encode(file.getvalue()).decode()}"
    return Picture(uri, *image.size)


N_LEVELS = 16
LONGEST_SIDE_OVERLAYS = 96  # of a map, in pixels; the browser smoothes it
MOST_OPAQUE = 0.8


def draw_overlay(evidence: npt.NDArray[np.floating], size: tuple[int, int]) -> Picture | None:
    """Return evidence above 0, (height, width), in the proportions of a picture of this size.

    None where there is none.
    """
    positive = np.maximum(np.nan_to_num(np.asarray(evidence, dtype=np.float64)), 0)
    if not positive.size or positive.max() <= 0:
        return None
    share = Image.fromarray((positive / positive.max()).astype(np.float32))
    factor = min(1, LONGEST_SIDE_OVERLAYS / max(size))
    small = max(1, round(factor * size[0])), max(1, round(factor * size[1]))
    smooth = np.asarray(share.resize(small, Image.Resampling.BICUBIC))
    level = np.clip(np.rint(smooth * (N_LEVELS - 1)), 0, N_LEVELS - 1).astype(np.uint8)
    image = Image.fromarray(level, mode="P")
    colours, opacity = _make_palette()
    image.putpalette(colours)
    return as_picture(image, "PNG", transparency=opacity, optimize=True)


def _make_palette() -> tuple[list[int], bytes]:
    """Return the colours of all levels, one after another, and how opaque each is."""
    from matplotlib import colormaps

    strength = np.linspace(0, 1, N_LEVELS)
    colours = np.rint(255 * colormaps["viridis"](strength)[:, :3]).astype(int)
    return colours.ravel().tolist(), bytes(
        np.rint(255 * MOST_OPAQUE * strength).astype(int).tolist()
    )


Maps = Callable[[Sequence[int], Sequence[int]], Sequence[npt.NDArray[np.floating]]]
BETWEEN = (0.25, 0.75)  # where a probability is doubtful
N_MAPS = 3  # of a card at most


@dataclass(frozen=True)
class Overlay:
    """Where in a picture the evidence for a label is."""

    label: str
    picture: Picture


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


def write_examples(
    images: NamedImages,
    label_names: Sequence[str],
    scores: npt.ArrayLike,
    predictions: Any,
    folder: str | Path,
    *,
    candidates: Any = None,
    answers: Answers | None = None,
    relevant: Any = None,
    rates: Mapping[str, npt.ArrayLike | None] | None = None,
    title: str = "Example predictions",
    n_examples: int = 60,
    seed: int = 0,
) -> Path:
    """Write a page of pictures with what a model says about them, for a person to look at.

    The pictures are drawn at random; the table of labels counts all rows.

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
    candidates : bool array of shape (n_samples, n_labels), optional
        True where the label is still possible. A prediction elsewhere is a contradiction.
    answers : Answers, optional
        In place of candidates: what was said. A label that is surely there and not predicted is a
        contradiction, too.
    relevant : bool array of shape (n_samples, n_labels), optional
        The true labels, if they are known.
    rates : mapping of "no" and "yes" to arrays of shape (n_labels,), optional
        How often an irrelevant pair is called so, and a relevant one: ``no_rate_`` and
        ``yes_rate_`` of a fitted model.
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
    >>> page = write_examples(images, ["rose", "sky"], [[0.9, 0.2]], [[1, 0]], home / "page")
    >>> page.name, "rose.png" in page.read_text(encoding="utf-8")
    ('index.html', True)
    """
    scores = np.asarray(scores, dtype=float)
    predictions = as_indicators(predictions, "predictions")
    if answers is None and candidates is not None:
        answers = Answers.from_candidates(as_candidates(candidates))
    relevant = None if relevant is None else as_relevant(relevant)
    given = {
        "predictions": predictions,
        "candidates": None if answers is None else answers.candidates,
        "relevant": relevant,
    }
    check_page_inputs(images.names, label_names, scores, given, n_examples)
    n = len(scores)
    drawn = np.random.default_rng(seed).choice(n, min(n_examples, n), replace=False)
    cards = [
        Card(
            row,
            images.names[row],
            shrink_image(images, row),
            _list_labels_examples(label_names, scores, predictions, row, answers, relevant),
        )
        for row in sorted(drawn.tolist())
    ]
    page = render_page(
        "examples.html.jinja",
        title=title,
        n_rows=n,
        cards=cards,
        label_names=label_names,
        columns=_count_labels_examples(predictions, answers, relevant, rates or {}),
        kind=None if answers is None else answers.kind,
        summary=None if answers is None else summarise_answers(answers),
        truth_known=relevant is not None,
        filters=_list_filters(cards, answers, relevant is not None),
    )
    with replacing_folder(folder, ("index.html",)) as temporary:
        # A file name may hold bytes that are no text.
        (temporary / "index.html").write_text(page, encoding="utf-8", errors="replace")
    return expanded(folder) / "index.html"


def _list_labels_examples(
    label_names: Sequence[str],
    scores: FloatArray,
    predictions: BoolMatrix,
    row: int,
    answers: Answers | None,
    relevant: BoolMatrix | None,
) -> list[Label]:
    """Return the labels of a row, the highest score first."""
    said = [(None, "")] * len(label_names) if answers is None else say_pairs(answers, row)
    truth = [None] * len(label_names) if relevant is None else relevant[row].tolist()
    columns = label_names, scores[row].tolist(), predictions[row].tolist(), said, truth
    return sort_labels(
        [
            Label(name, score, predicted, word, is_relevant, voices, number)
            for number, (name, score, predicted, (word, voices), is_relevant) in enumerate(
                zip(*columns, strict=True)
            )
        ]
    )


def _list_filters(
    cards: Sequence[Card], answers: Answers | None, truth_known: bool
) -> list[tuple[str, str, int]]:
    """Return the name of every filter, its words, and how many cards it leaves."""
    words = {"contradictions": "only with contradictions"} if answers is not None else {}
    if answers is not None and answers.kind == "answers":
        words["answered"] = "only with answers"
        if find_agreement(answers) is not None:
            words["disputed"] = "only where people disagree"
    if truth_known:
        words["mistakes"] = "only with mistakes"
    return [
        (id, text, sum(bool(getattr(card, id)) for card in cards)) for id, text in words.items()
    ]


def _count_labels_examples(
    predictions: BoolMatrix,
    answers: Answers | None,
    relevant: BoolMatrix | None,
    rates: Mapping[str, Any],
) -> dict[str, list[str]]:
    """Return columns of shares and counts of every label, over all rows."""
    columns = {"predicted": _show_shares(predictions.mean(axis=0))}
    if answers is not None:
        columns |= count_answers(answers, rates)
        wrong = (predictions & (answers.codes == State.NO)).sum(axis=0)
        wrong += (~predictions & (answers.codes == State.YES)).sum(axis=0)
        columns["contradictions"] = [str(count) for count in wrong]
    if relevant is not None:
        hits = (predictions & relevant).sum(axis=0)
        with np.errstate(invalid="ignore"):
            columns["precision"] = _show_shares(hits / predictions.sum(axis=0))
            columns["recall"] = _show_shares(hits / relevant.sum(axis=0))
    return columns


def _show_shares(shares: npt.NDArray[np.floating]) -> list[str]:
    """Return shares as percents; NaN is a share of nothing."""
    return ["–" if np.isnan(share) else f"{share:.1%}" for share in shares]
