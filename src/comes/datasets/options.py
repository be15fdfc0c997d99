"""`ReadOptions`: what the columns and labels of a file mean."""

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, get_args

from comes.answers import State
from comes.errors import ComesError

LabelsAre = Literal["candidates", "complementary", "positives"]
Difficult = Literal["irrelevant", "relevant"]
Unannotated = Literal["drop", "keep"]

NAMES = (
    "labels",
    "relevant",
    "ignore",
    "text",
    "category",
    "number",
    "date",
    "feature_columns",
    "long",
    "label_names",
)
TEXTS = ("item", "separator", "features", "images", "xml")
CHOICES = {"labels_are": LabelsAre, "difficult": Difficult, "unannotated": Unannotated}


@dataclass(frozen=True)
class ReadOptions:
    """How to read a file: what its columns and labels mean. None means "not given".

    Parameters
    ----------
    labels, relevant : sequence of str, optional
        Columns of a table or ARFF file with the candidates or answers, and with the truth: one per
        label, by name or with wildcards (``["has_*"]``), 0/1 or "no", "yes", "maybe" and nothing;
        or one column of label names ("apple;plate"), or those called no, yes and maybe. In a Label
        Studio export, ``labels`` names the ``<Choices>``.
    ignore : sequence of str, optional
        Columns that are neither label nor feature, by name or with wildcards; they are left out of
        ``labels`` and ``relevant`` too.
    text, category, number, date : sequence of str, optional
        Feature columns of a table that are to be taken for texts, categories, numbers or dates, by
        name or with wildcards; by default what their cells look like.
    feature_columns : sequence of str, optional
        Feature columns; by default every other column.
    item : str, optional
        The column or field that names the items.
    long : sequence of three to five str, optional
        The columns of a table with a row per answer, if not "item", "label" and "answer"; then the
        person who answered and who chose the question, if not "person" and "source".
    words : mapping of str to str, optional
        What the words of answers mean: "no", "yes", "maybe" or "not asked".
    labels_are : {"candidates", "complementary", "positives"}, optional
        Read the labels as candidates, as complementary labels (surely irrelevant), or as ticked
        ones (surely relevant, and the others may be), where the format would take them for the
        truth or, in a table, for candidates.
    label_names : sequence of str, optional
        All labels, in the order wanted. A column of label names may not show every one of them.
        Other labels are matched by name, or by position if no name agrees.
    separator : str, optional
        What separates label names in a cell: text, "space", "tab", or "list" for lists in brackets.
        By default it is inferred where it is clear, and asked for where it is not.
    features : str or Path, optional
        A file of features with the same items, for a file of labels.
    images : str or Path, optional
        The folder or .zip file of the images that the items name.
    skip_broken : bool
        Leave out images that are missing or cannot be read, with a warning.
    xml : str or Path, optional
        The file that names the labels of an ARFF file, if it is not beside it.
    n_features : int, optional
        The number of features of a LIBSVM file, which may not show the last ones.
    difficult : {"irrelevant", "relevant"}, optional
        What VOC's difficult objects count as; irrelevant by default.
    unannotated : {"drop", "keep"}, optional
        What to do with images of a COCO file that have no annotation; dropped by default.

    Notes
    -----
    Lists become tuples; an empty list becomes None.

    Examples
    --------
    >>> options = ReadOptions(labels=["has_*"], item="photo")
    >>> options.labels, options.given
    (('has_*',), ('labels', 'item'))
    >>> ReadOptions(difficult="no")
    Traceback (most recent call last):
    ...
    comes.errors.ComesError: difficult must be 'irrelevant' or 'relevant'; got 'no'.
    """

    labels: Sequence[str] | None = None
    relevant: Sequence[str] | None = None
    ignore: Sequence[str] | None = None
    text: Sequence[str] | None = None
    category: Sequence[str] | None = None
    number: Sequence[str] | None = None
    date: Sequence[str] | None = None
    feature_columns: Sequence[str] | None = None
    item: str | None = None
    long: Sequence[str] | None = None
    words: Mapping[str, str] | None = field(default=None, hash=False)
    labels_are: LabelsAre | None = None
    label_names: Sequence[str] | None = None
    separator: str | None = None
    features: str | Path | None = None
    images: str | Path | None = None
    skip_broken: bool = False
    xml: str | Path | None = None
    n_features: int | None = None
    difficult: Difficult | None = None
    unannotated: Unannotated | None = None

    def __post_init__(self) -> None:
        for name in NAMES:
            values = getattr(self, name)
            if isinstance(values, (str, bytes)):
                raise ComesError(
                    f"{name} must be a list of names; got {values!r}. Write [{values!r}]."
                )
            names = None if values is None or len(values) == 0 else tuple(map(str, values))
            object.__setattr__(self, name, names)
        for word, state in (self.words or {}).items():
            if state not in {state.word for state in State}:
                raise ComesError(
                    f"the answer {word!r} must mean 'no', 'yes', 'maybe' or 'not asked'; got "
                    f"{state!r}."
                )
        object.__setattr__(self, "words", dict(self.words) if self.words else None)
        for name in TEXTS:
            if getattr(self, name) is not None and not str(getattr(self, name)):
                raise ComesError(f"{name} must not be empty. Leave it out, or give None.")
        for name, literal in CHOICES.items():
            value, choices = getattr(self, name), get_args(literal)
            if value is not None and value not in choices:
                *first, last = map(repr, choices)
                raise ComesError(f"{name} must be {', '.join(first)} or {last}; got {value!r}.")
        if self.long is not None and not 3 <= len(self.long) <= 5:
            raise ComesError(
                "long must name three columns, item, label and answer, and may name who answered "
                f"and who chose the question; got {list(self.long)}."
            )
        if self.features is not None and self.images is not None:
            raise ComesError("a data set has features or images; got both. Leave one out.")
        if self.n_features is not None and self.n_features < 1:
            raise ComesError(f"n_features must be at least 1; got {self.n_features}.")

    @property
    def given(self) -> tuple[str, ...]:
        """The names of the fields that were given."""
        return tuple(f.name for f in fields(self) if getattr(self, f.name) != f.default)

    @property
    def word_columns(self) -> list[str]:
        """The columns whose cells are read as they are written: texts, categories and dates."""
        return [*(self.text or ()), *(self.category or ()), *(self.date or ())]

    @property
    def has_labels_alone(self) -> bool:
        """Whether features or images come from elsewhere, so that only labels are read."""
        return self.features is not None or self.images is not None


def as_options(options: ReadOptions | None, values: Mapping[str, Any]) -> ReadOptions:
    """Return the options, or make them from fields given as keywords."""
    if options is None:
        known = [f.name for f in fields(ReadOptions)]
        for name in values:
            if name not in known:
                near = difflib.get_close_matches(name, known, n=1)
                hint = f"Did you mean {near[0]!r}?" if near else f"There are {', '.join(known)}."
                raise ComesError(f"{name!r} is not a field of ReadOptions. {hint}")
        return ReadOptions(**values)
    if not isinstance(options, ReadOptions):
        raise ComesError(
            f"the second argument must be ReadOptions, or left out; got {options!r}. Write "
            "ReadOptions(labels=[...]), or give the fields as keywords."
        )
    if values:
        raise ComesError(
            f"give ReadOptions or the fields as keywords; got both ({next(iter(values))!r}). "
            "dataclasses.replace changes a field of ReadOptions."
        )
    return options
