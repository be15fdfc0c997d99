"""Cards of pictures, for pages: a small copy, scores as bars, and what was said of the labels."""

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Protocol

import jinja2
import numpy as np
import numpy.typing as npt
from PIL import Image

from comes.answers.convert import BoolMatrix, check_names
from comes.errors import ComesError

FloatArray = npt.NDArray[np.float64]

LONGEST_SIDE = 320  # of a picture, in pixels
N_BARS, MOST_BARS = 5, 8  # labels that a card shows at least, and, of new pictures, at most

# How a page writes what is known of a pair, and the sign before it.
SIGNS = {
    "no": "never",
    "yes": "right",
    "maybe": "candidate",
    "not asked": "unasked",
    "surely not": "never",
    "candidate": "candidate",
    "ticked": "right",
    "not ticked": "unasked",
}
SURELY_NOT, SURELY_THERE = ("no", "surely not"), ("yes", "ticked")


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
    said: str | None = None  # a key of SIGNS; None where nothing is known of any pair
    relevant: bool | None = None  # where the truth is known
    voices: str = ""  # where people disagree, how many said what: "1 no, 2 yes"
    number: int = 0  # its column

    @property
    def contradiction(self) -> str | None:
        """What is wrong if the prediction is not what somebody said; None if nothing is."""
        if self.predicted and self.said in SURELY_NOT:
            return "predicted, but surely not"
        if not self.predicted and self.said in SURELY_THERE:
            return f"{'ticked' if self.said == 'ticked' else 'surely there'}, but not predicted"
        return None

    @property
    def verdict(self) -> str | None:
        """What the truth says of it; None where there is nothing to say."""
        if self.relevant is None or not (self.predicted or self.relevant):
            return None
        if not self.predicted:
            return "missed"
        return "right" if self.relevant else "false positive"

    @property
    def is_answered(self) -> bool:
        """Whether somebody was asked about it, and answered."""
        return self.said in ("no", "yes", "maybe")


@dataclass(frozen=True)
class Picture:
    """A small copy of an image, as a page holds it."""

    uri: str
    width: int
    height: int


@dataclass(frozen=True)
class Card:
    """One picture of the page, with its labels."""

    row: int
    name: str
    picture: Picture | None  # none where the image cannot be read
    labels: list[Label]  # the highest score first

    @property
    def top(self) -> list[Label]:
        """Labels with something to see: the first few, all predicted, missed or answered ones."""
        return [
            label
            for place, label in enumerate(self.labels)
            if place < N_BARS
            or label.predicted
            or label.relevant
            or label.contradiction
            or label.is_answered
        ]

    @property
    def first(self) -> list[Label]:
        """The labels of the highest scores: a few, or more if more are predicted."""
        n_predicted = sum(label.predicted for label in self.labels)
        return self.labels[: min(max(N_BARS, n_predicted), MOST_BARS)]

    def said(self, word: str) -> list[Label]:
        """Return the labels of which this was said, and agreed on."""
        return [label for label in self.labels if label.said == word and not label.voices]

    @property
    def answered(self) -> list[Label]:
        """Labels that somebody was asked about."""
        return [label for label in self.labels if label.is_answered]

    @property
    def marked(self) -> list[int]:
        """Columns of the labels that a filter by label shows this picture for."""
        return [
            label.number
            for label in self.labels
            if label.predicted or label.relevant or label.said in ("yes", "no", "maybe", "ticked")
        ]

    @property
    def disputed(self) -> list[Label]:
        """Labels of which people said different things."""
        return [label for label in self.labels if label.voices]

    @property
    def contradictions(self) -> list[Label]:
        """Labels whose prediction is not what somebody said."""
        return [label for label in self.labels if label.contradiction]

    @property
    def mistakes(self) -> list[Label]:
        """Labels that are missed or false positives."""
        return [label for label in self.labels if label.verdict in ("missed", "false positive")]


def sort_labels(labels: Sequence[Label]) -> list[Label]:
    """Return the labels of a picture, the highest score first."""
    return sorted(labels, key=lambda label: -label.score)


def check_page_inputs(
    image_names: Sequence[str],
    label_names: Sequence[str],
    scores: FloatArray,
    given: dict[str, BoolMatrix | None],
    n_examples: int,
) -> None:
    """Raise an error unless there are probabilities for every picture and label."""
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


def render_page(template: str, **values: Any) -> str:
    """Return a page; names are data in it, never markup."""
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_read_template),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals["signs"] = SIGNS
    return environment.get_template(template).render(values)


def _read_template(name: str) -> str:
    return files("comes.report").joinpath(name).read_text(encoding="utf-8")
