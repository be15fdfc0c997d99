"""A page of example predictions: pictures with scores, answers and what contradicts them."""

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, Protocol

import jinja2
import numpy as np
import numpy.typing as npt
from PIL import Image

from comes.answers import (
    Answers,
    BoolMatrix,
    State,
    as_candidates,
    as_indicators,
    as_relevant,
    check_names,
)
from comes.errors import ComesError
from comes.files import expanded, replacing_folder

FloatArray = npt.NDArray[np.float64]

LONGEST_SIDE = 320  # of a picture, in pixels
N_BARS = 5  # labels that a card shows at least


class NamedImages(Protocol):
    """What `comes.datasets.Images` is: pictures that are opened one at a time, with names."""

    @property
    def names(self) -> Sequence[str]:
        """Names of the files."""

    def __getitem__(self, row: int, /) -> npt.NDArray[np.uint8]: ...


@dataclass(frozen=True)
class Label:
    """What is known about one label of one picture."""

    name: str
    score: float
    predicted: bool
    candidate: bool  # also where nobody was asked
    relevant: bool | None  # where the truth is known
    said: str | None = None  # no, yes, maybe or not asked; None if only candidates are known

    @property
    def contradiction(self) -> str | None:
        """What is wrong if the prediction is not what somebody said; None if nothing is."""
        if self.predicted and not self.candidate:
            return "predicted, but surely not"
        if self.said == State.YES.word and not self.predicted:
            return "surely there, but not predicted"
        return None

    @property
    def verdict(self) -> str | None:
        """What the truth says of it; None where there is nothing to say."""
        if self.relevant is None or not (self.predicted or self.relevant):
            return None
        if not self.predicted:
            return "missed"
        return "right" if self.relevant else "false positive"


@dataclass(frozen=True)
class Picture:
    """A small copy of an image, as a page holds it."""

    uri: str
    width: int
    height: int


@dataclass(frozen=True)
class Example:
    """One card of the page."""

    row: int
    name: str
    picture: Picture | None  # none where the image cannot be read
    labels: list[Label]  # the highest score first

    @property
    def top(self) -> list[Label]:
        """Labels with something to see: the first few, all predicted and all missed ones."""
        return [
            label
            for place, label in enumerate(self.labels)
            if place < N_BARS or label.predicted or label.relevant or label.contradiction
        ]

    @property
    def excluded(self) -> list[Label]:
        """Labels that are surely not relevant."""
        return [label for label in self.labels if not label.candidate]

    @property
    def contradictions(self) -> list[Label]:
        """Labels whose prediction is not what somebody said."""
        return [label for label in self.labels if label.contradiction]

    @property
    def mistakes(self) -> list[Label]:
        """Labels that are missed or false positives."""
        return [label for label in self.labels if label.verdict in ("missed", "false positive")]


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
    if answers is not None:
        candidates = answers.candidates
    candidates = None if candidates is None else as_candidates(candidates)
    relevant = None if relevant is None else as_relevant(relevant)
    given = {"predictions": predictions, "candidates": candidates, "relevant": relevant}
    _check_inputs(images.names, label_names, scores, given, n_examples)
    possible = np.ones_like(predictions) if candidates is None else candidates
    said = answers.codes if answers is not None and answers.kind == "answers" else None
    n = len(scores)
    drawn = np.random.default_rng(seed).choice(n, min(n_examples, n), replace=False)
    with replacing_folder(folder, ("index.html",)) as temporary:
        page = _render_page(
            title=title,
            n_rows=n,
            candidates_known=candidates is not None,
            answers_known=said is not None,
            truth_known=relevant is not None,
            table=_count_labels(label_names, predictions, possible, said, relevant),
            examples=[
                Example(
                    row,
                    images.names[row],
                    _shrink_image(images, row),
                    _list_labels(
                        label_names,
                        scores[row],
                        predictions[row],
                        possible[row],
                        None if relevant is None else relevant[row],
                        None if said is None else said[row],
                    ),
                )
                for row in sorted(drawn.tolist())
            ],
        )
        # A file name may hold bytes that are no text.
        (temporary / "index.html").write_text(page, encoding="utf-8", errors="replace")
    return expanded(folder) / "index.html"


def _check_inputs(
    image_names: Sequence[str],
    label_names: Sequence[str],
    scores: FloatArray,
    given: dict[str, BoolMatrix | None],
    n_examples: int,
) -> None:
    check_names(label_names)
    n, q = shape = len(image_names), len(label_names)
    for name, values in {"scores": scores, **given}.items():
        if values is not None and values.shape != shape:
            raise ComesError(
                f"{n} images and {q} label names need {name} of shape {shape}; got "
                f"{values.shape}. Give a row for every image and a column for every label."
            )
    wrong = np.argwhere(~((scores >= 0) & (scores <= 1)))
    if len(wrong):
        row, label = wrong[0].tolist()
        raise ComesError(
            f"scores must be probabilities in [0, 1]; got {scores[row, label]:g} at row {row}, "
            f"label {label_names[label]!r}. Pass what predict_proba returns."
        )
    if n_examples < 1:
        raise ComesError(f"n_examples must be 1 or more; got {n_examples}.")


def _count_labels(
    label_names: Sequence[str],
    predictions: BoolMatrix,
    candidates: BoolMatrix,
    said: npt.NDArray[np.int8] | None,
    relevant: BoolMatrix | None,
) -> list[dict[str, Any]]:
    """Return shares and counts of every label over all rows; NaN is a share of nothing."""
    wrong = predictions & ~candidates
    columns: dict[str, Any] = {
        "name": label_names,
        "predicted": predictions.mean(axis=0),
        "candidate": candidates.mean(axis=0),
    }
    if said is not None:
        wrong = wrong | (~predictions & (said == State.YES))
        for state in (State.NO, State.YES, State.MAYBE):
            columns[state.word] = (said == state).sum(axis=0)
    columns["contradictions"] = wrong.sum(axis=0)
    if relevant is not None:
        hits = (predictions & relevant).sum(axis=0)
        with np.errstate(invalid="ignore"):
            columns["precision"] = hits / predictions.sum(axis=0)
            columns["recall"] = hits / relevant.sum(axis=0)
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _list_labels(
    label_names: Sequence[str],
    scores: FloatArray,
    predicted: npt.NDArray[np.bool_],
    possible: npt.NDArray[np.bool_],
    relevant: npt.NDArray[np.bool_] | None,
    said: npt.NDArray[np.int8] | None,
) -> list[Label]:
    """Return the labels of a row, the highest score first."""
    nothing = [None] * len(label_names)
    truth = nothing if relevant is None else relevant.tolist()
    words = nothing if said is None else [State(code).word for code in said]
    columns = (label_names, scores.tolist(), predicted.tolist(), possible.tolist(), truth, words)
    labels = [Label(*values) for values in zip(*columns, strict=True)]
    return sorted(labels, key=lambda label: -label.score)


def _shrink_image(images: NamedImages, row: int) -> Picture | None:
    try:
        pixels = images[row]
    except ComesError:
        return None
    if not pixels.size:
        return None
    image = Image.fromarray(pixels)
    image.thumbnail((LONGEST_SIDE, LONGEST_SIDE))
    file = io.BytesIO()
    image.save(file, "JPEG", quality=80)
    uri = f"data:image/jpeg;base64,{base64.b64encode(file.getvalue()).decode()}"
    return Picture(uri, *image.size)


def _render_page(**values: Any) -> str:
    text = files("comes.report").joinpath("examples.html.jinja").read_text(encoding="utf-8")
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["share"] = lambda x: "–" if np.isnan(x) else f"{x:.1%}"
    return environment.from_string(text).render(values)
