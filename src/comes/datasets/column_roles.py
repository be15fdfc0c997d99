"""Which columns of a table are labels, the truth, ignored, and the names of items."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from comes.datasets.answer_tables import LONG
from comes.datasets.dataset_parts import LabelsAre
from comes.datasets.label_columns import (
    ANSWER,
    CANDIDATE,
    EXCLUDED,
    NAMES_COLUMNS,
    POSITIVE,
    PREFIXES,
    RELEVANT,
    STATE_COLUMNS,
    are_state_sets,
)
from comes.datasets.reading import Reading
from comes.datasets.tables import find_columns, no_column
from comes.errors import ComesError, listed

# Columns that may name items, the likeliest first, where a table is read for its labels alone:
# items are matched with the rows of a file of features, or are files of images.
ITEM_COLUMNS = ("item", "image", "file", "filename", "path")


@dataclass(frozen=True)
class Roles:
    """What the columns of a table are."""

    labels: list[str]
    truth: list[str]
    ignored: list[str]
    item: str | None
    labels_are: LabelsAre  # what the labels mark: what is possible, surely irrelevant, or ticked
    in_states: bool  # the labels are answers, by their name or because their words are declared

    @property
    def are_state_sets(self) -> bool:
        """Whether columns called no, yes and maybe hold names of labels."""
        return are_state_sets(self.labels)

    @property
    def text_columns(self) -> set[str]:
        """The columns whose cells are kept as text."""
        single = [
            column for group in (self.labels, self.truth) if len(group) == 1 for column in group
        ]
        named = [] if self.item is None else [self.item]
        in_words = self.labels if self.in_states or self.are_state_sets else ()
        return {*single, *in_words, *named, *self.ignored}

    def find_features(self, columns: Sequence[str]) -> list[str]:
        """Return the columns that have no other role, in this table or in one that we write."""
        used = {*self.labels, *self.truth, *self.ignored, self.item, *NAMES_COLUMNS}
        of_predictions = ("probability:", "score:") if "predicted" in columns else ()
        prefixes = (*PREFIXES, *of_predictions)
        return [name for name in columns if name not in used and not name.startswith(prefixes)]


def find_long_columns(columns: Sequence[str], reading: Reading, path: Path) -> list[str] | None:
    """Return the columns item, label and answer, and those named after them; None if not long."""
    wanted = reading.long
    if wanted is None and reading.labels is None and reading.relevant is None:
        wanted = LONG if set(LONG) <= set(columns) else None
    if wanted is None:
        return None
    found = find_columns(columns, wanted)
    others = (reading.labels, reading.relevant, reading.ignore, reading.item)
    if (
        len(found) != len(wanted)
        or reading.is_complementary
        or any(other is not None for other in others)
    ):
        raise ComesError(
            f"{path.name} is read as a table of answers, with the columns item, label and answer. "
            "Name these three, and leave out other columns and labels_are (--complementary): the "
            "answer 'no' excludes a label."
        )
    return found


def find_roles(columns: Sequence[str], reading: Reading) -> Roles:
    """Return what the columns of a table are, from the reading or from their names."""
    labels, relevant = reading.labels, reading.relevant
    if labels is None and relevant is None:
        _refuse_two_views(columns, reading)
        labels, relevant = _find_described(columns)
    ignored = find_columns(columns, reading.ignore or ())
    found, truth = (
        [c for c in find_columns(columns, wanted or ()) if c not in ignored]
        for wanted in (labels, relevant)
    )
    if not found and not truth and ignored:
        raise ComesError(
            f"every column of labels is ignored, too: {listed(ignored)}. Leave one of the two out "
            "(--labels, --ignore)."
        )
    both = [name for name in found if name in truth]
    if both:
        raise ComesError(
            f"a column holds labels or the truth; got both for {listed(both)}. Name other columns "
            "for one of them (--labels, --relevant), or leave one out."
        )
    if not found and (reading.is_complementary or reading.words is not None):
        raise ComesError(
            "labels_are (--complementary) and words (--answers) apply to candidates, but only the "
            "truth is named. Name the columns of the candidates (--labels)."
        )
    if reading.item is None:
        item = _find_item(columns, {*ignored, *found, *truth}, reading)
    else:
        item = find_columns(columns, [reading.item])[0]
        if item in (*found, *truth):
            raise ComesError(
                f"column {item!r} cannot hold both labels and the names of the items. Name another "
                "column for one of them (--labels, --item)."
            )
    return Roles(
        found,
        truth,
        ignored,
        item,
        labels_are=_find_kind(found, reading),
        in_states=reading.words is not None or any(c.startswith(ANSWER) for c in found),
    )


def _find_kind(found: Sequence[str], reading: Reading) -> LabelsAre:
    """Return what columns of labels mark, from the reading or from their names."""
    said = reading.labels_are or "candidates"
    prefixes: dict[LabelsAre, str] = {"complementary": EXCLUDED, "positives": POSITIVE}
    for kind, prefix in prefixes.items():
        own = [c for c in found if c.startswith(prefix) or c == kind]
        if 0 < len(own) < len(found):
            raise ComesError(
                f"labels are candidates or {kind}; got both: {listed(list(found))}. Name columns "
                "of one kind."
            )
        if own and reading.labels_are not in (None, kind):
            raise ComesError(
                f"the names of the columns say that they are {kind}: {listed(own)}. Leave out "
                f"labels_are (--{reading.labels_are}), or name other columns (--labels)."
            )
        said = kind if own else said
    return said


def _find_item(columns: Sequence[str], taken: set[str], reading: Reading) -> str | None:
    """Return the column whose name says that it names the items, or None."""
    possible = ITEM_COLUMNS if reading.has_labels_alone else ITEM_COLUMNS[:1]
    return next((name for name in possible if name in columns and name not in taken), None)


def _find_described(columns: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the columns of labels and of the truth in a table with our column names."""
    truth = _find_called(columns, RELEVANT, "relevant")
    for prefix, name in (
        (CANDIDATE, "candidates"),
        (EXCLUDED, "complementary"),
        (POSITIVE, "positives"),
        (ANSWER, None),
    ):
        if labels := _find_called(columns, prefix, name):
            return labels, truth
    if "no" in columns and are_state_sets(labels := [c for c in columns if c in STATE_COLUMNS]):
        return labels, truth
    if truth:
        return [], truth
    if len(columns) == 1 and re.search(r"[;\t]", columns[0]):
        raise no_column("labels", columns)
    raise ComesError(
        "which columns hold the labels? Name them (--labels, or --relevant for the truth, on the "
        "command line): columns of 0 and 1, or of no, yes and maybe; or one column of label names. "
        "The columns are "
        f"{listed(list(columns))}."
    )


def _find_called(columns: Sequence[str], prefix: str, name: str | None) -> list[str]:
    """Return the columns with a prefix or, where there are none, the one of that name."""
    return [c for c in columns if c.startswith(prefix)] or [c for c in columns if c == name]


def _refuse_two_views(columns: Sequence[str], reading: Reading) -> None:
    """Raise if labels should be of one kind, but the names of their columns say otherwise."""
    ours = ("candidates", "relevant")
    described = [c for c in columns if c.startswith((CANDIDATE, RELEVANT)) or c in ours]
    if (reading.is_complementary or reading.is_positive) and described:
        raise ComesError(
            f"the names of the columns say that they are not {reading.labels_are}: "
            f"{listed(described)}. Leave out labels_are (--{reading.labels_are}), or name other "
            "columns (--labels)."
        )
