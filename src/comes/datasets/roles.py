"""Which columns of a table hold labels, the truth and the names of items, and which are ignored.

In a table that we write, names say what columns are: ``item``; ``candidate:NAME``,
``excluded:NAME``, ``positive:NAME`` or ``answer:NAME``, and ``relevant:NAME``; or, with label names
in the cells, ``candidates``, ``complementary``, ``positives``, or ``no``, ``yes`` and ``maybe``,
and ``relevant``. Every other column is a feature.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from comes.datasets.options import LabelsAre, ReadOptions
from comes.datasets.table import NAMELESS, find_columns, no_column
from comes.errors import ComesError, listed

PREFIXES = CANDIDATE, EXCLUDED, POSITIVE, ANSWER, RELEVANT = (
    "candidate:",
    "excluded:",
    "positive:",
    "answer:",
    "relevant:",
)
NAMES_COLUMNS = ("candidates", "complementary", "positives", "relevant")
STATE_COLUMNS = ("no", "yes", "maybe")
LONG = ("item", "label", "answer")
# Columns that may name items, the likeliest first, where a table is read for its labels alone:
# items are matched with the rows of a file of features, or are files of images.
ITEM_COLUMNS = ("item", "image", "file", "filename", "path")
MOST_LABEL_COLUMNS = 10_000


@dataclass(frozen=True)
class Roles:
    """What the columns of a table are."""

    labels: list[str]
    truth: list[str]
    ignored: list[str]
    item: str | None
    labels_are: LabelsAre  # what the labels mark: what is possible, surely irrelevant, or ticked
    in_words: bool  # the labels are answers, by their name or because their words are declared

    @property
    def are_state_sets(self) -> bool:
        """Whether columns called no, yes and maybe, two of them at least, hold names of labels."""
        return len(self.labels) > 1 and set(self.labels) <= set(STATE_COLUMNS)

    @property
    def text_columns(self) -> set[str]:
        """The columns whose cells are kept as text."""
        single = [names[0] for names in (self.labels, self.truth) if len(names) == 1]
        items = [] if self.item is None else [self.item]
        in_words = self.labels if self.in_words or self.are_state_sets else ()
        return {*single, *in_words, *items, *self.ignored}

    def find_features(self, columns: Sequence[str]) -> list[str]:
        """Return the columns that have no other role, in this table or in one that we write."""
        used = {*self.labels, *self.truth, *self.ignored, self.item, *NAMES_COLUMNS}
        of_predictions = ("probability:", "score:") if "predicted" in columns else ()
        prefixes = (*PREFIXES, *of_predictions)
        return [name for name in columns if name not in used and not name.startswith(prefixes)]

    def list(self) -> dict[str, str]:
        """Return the role of every column that is no feature."""
        roles = {} if self.item is None else {self.item: "item"}
        roles |= dict.fromkeys(self.ignored, "ignored")
        return roles | dict.fromkeys(self.truth, "truth") | dict.fromkeys(self.labels, "label")


def is_reserved(name: str) -> bool:
    """Return whether a name is not for features: one of our label columns, or empty."""
    return name in NAMES_COLUMNS or name.startswith(PREFIXES) or bool(NAMELESS.fullmatch(name))


def find_long_columns(columns: Sequence[str], options: ReadOptions) -> list[str] | None:
    """Return the columns item, label and answer, and those named after them; None if not long."""
    wanted = options.long
    if wanted is None and options.labels is None and options.relevant is None:
        wanted = LONG if set(LONG) <= set(columns) else None
    if wanted is None:
        return None
    long = find_columns(columns, wanted)
    item = options.item if options.features is None else None  # else it names the items there
    others = (options.labels, options.relevant, options.ignore, item)
    is_complementary = options.labels_are == "complementary"
    if len(long) != len(wanted) or is_complementary or any(o is not None for o in others):
        raise ComesError(
            "this is read as a table of answers, with the columns item, label and answer. Name "
            "these three, and leave out other columns and labels_are (--complementary): the answer "
            "'no' excludes a label."
        )
    return long


def find_roles(columns: Sequence[str], options: ReadOptions) -> Roles:
    """Return what the columns of a table are, from the options or from their names."""
    wanted_labels, wanted_truth = options.labels, options.relevant
    if wanted_labels is None and wanted_truth is None:
        wanted_labels, wanted_truth = _find_described(columns, options)
    ignored = find_columns(columns, options.ignore or ())
    labels, truth = (
        [name for name in find_columns(columns, wanted or ()) if name not in ignored]
        for wanted in (wanted_labels, wanted_truth)
    )
    if not labels and not truth and ignored:
        raise ComesError(
            f"every column of labels is ignored, too: {listed(ignored)}. Leave one of the two out "
            "(--labels, --ignore)."
        )
    both = [name for name in labels if name in truth]
    if both:
        raise ComesError(
            f"a column holds labels or the truth; got both for {listed(both)}. Name other columns "
            "for one of them (--labels, --relevant), or leave one out."
        )
    for names, option in ((labels, "--labels"), (truth, "--relevant")):
        if len(names) > MOST_LABEL_COLUMNS:
            raise ComesError(
                f"{len(names)} columns are named as labels, {listed(names, 2)}; a table may have "
                f"{MOST_LABEL_COLUMNS}. Name fewer ({option}), or write the labels of a row in one "
                "column of names."
            )
    if not labels and (options.labels_are == "complementary" or options.words is not None):
        raise ComesError(
            "labels_are (--complementary) and words (--answers) apply to candidates, but only the "
            "truth is named. Name the columns of the candidates (--labels)."
        )
    return Roles(
        labels,
        truth,
        ignored,
        _find_item(columns, {*ignored, *labels, *truth}, {*labels, *truth}, options),
        labels_are=_find_kind(labels, options),
        in_words=options.words is not None or any(name.startswith(ANSWER) for name in labels),
    )


def _find_item(
    columns: Sequence[str], taken: set[str], labels: set[str], options: ReadOptions
) -> str | None:
    """Return the column that names the items, named by the user or by its own name."""
    if options.item is None:
        possible = ITEM_COLUMNS if options.has_labels_alone else ITEM_COLUMNS[:1]
        return next((name for name in possible if name in columns and name not in taken), None)
    item = find_columns(columns, [options.item])[0]
    if item in labels:
        raise ComesError(
            f"column {item!r} cannot hold both labels and the names of the items. Name another "
            "column for one of them (--labels, --item)."
        )
    return item


def _find_kind(labels: Sequence[str], options: ReadOptions) -> LabelsAre:
    """Return what columns of labels mark, from the options or from their names."""
    prefixes: dict[LabelsAre, str] = {"complementary": EXCLUDED, "positives": POSITIVE}
    for kind, prefix in prefixes.items():
        named = [name for name in labels if name.startswith(prefix) or name == kind]
        if 0 < len(named) < len(labels):
            raise ComesError(
                f"labels are candidates or {kind}; got both: {listed(list(labels))}. Name columns "
                "of one kind."
            )
        if named and options.labels_are not in (None, kind):
            raise ComesError(
                f"the names of the columns say that they are {kind}: {listed(named)}. Leave out "
                f"labels_are (--{options.labels_are}), or name other columns (--labels)."
            )
        if named:
            return kind
    return options.labels_are or "candidates"


def _find_described(
    columns: Sequence[str], options: ReadOptions
) -> tuple[Sequence[str], Sequence[str]]:
    """Return the columns of labels and of the truth in a table with our column names."""
    if options.labels_are in ("complementary", "positives"):
        other = [c for c in columns if c.startswith((CANDIDATE, RELEVANT))]
        other += [c for c in columns if c in ("candidates", "relevant")]
        if other:
            raise ComesError(
                f"the names of the columns say that they are not {options.labels_are}: "
                f"{listed(other)}. Leave out labels_are (--{options.labels_are}), or name other "
                "columns (--labels)."
            )

    def called(prefix: str, name: str | None) -> list[str]:
        return [c for c in columns if c.startswith(prefix)] or [c for c in columns if c == name]

    truth = called(RELEVANT, "relevant")
    for prefix, name in (
        (CANDIDATE, "candidates"),
        (EXCLUDED, "complementary"),
        (POSITIVE, "positives"),
        (ANSWER, None),
    ):
        if labels := called(prefix, name):
            return labels, truth
    states = [name for name in columns if name in STATE_COLUMNS]
    if "no" in states and len(states) > 1:
        return states, truth
    if truth:
        return [], truth
    if len(columns) == 1 and re.search(r"[;\t]", columns[0]):
        raise no_column("labels", columns)
    raise ComesError(
        "which columns hold the labels? Name them (--labels, or --relevant for the truth, on the "
        "command line): columns of 0 and 1, or of no, yes and maybe; or one column of label names. "
        f"The columns are {listed(list(columns))}."
    )
