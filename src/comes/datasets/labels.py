"""Which columns of a table hold labels, the truth and the names of items, and what labels say.

In a table that we write, names say what columns are: ``item``; ``candidate:NAME``,
``excluded:NAME``, ``positive:NAME`` or ``answer:NAME``, and ``relevant:NAME``; or, with label names
in the cells, ``candidates``, ``complementary``, ``positives``, or ``no``, ``yes`` and ``maybe``,
and ``relevant``. Every other column is a feature. Labels come in one of three forms:

- wide: a column per label, 0/1, or "no", "yes", "maybe" and nothing for not asked;
- names: one column of label names ("apple;plate"), or one for each of no, yes and maybe;
- long: the columns item, label and answer, a row per answer (`comes.datasets.long`).

One column is taken for names unless all its cells are 0 or 1, or answers. An empty cell of names is
refused in candidates and in the truth, where it could mean that nothing applies or that nobody was
asked: ``(none)`` says the first. Elsewhere an empty cell says nothing.
"""

import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import sparse

from comes.answers import Answers, State
from comes.answers.convert import match_names
from comes.answers.matrix import Kind
from comes.datasets.dataset import Marks, answers_of_marks, fill_marks, marks_of_sets
from comes.datasets.options import LabelsAre, ReadOptions
from comes.datasets.separators import LIST, NOTHING, check_separator, find_separator, split_cell
from comes.datasets.table import NAMELESS, as_text, find_columns
from comes.errors import ComesError, counted, listed, warn_user

Codes = npt.NDArray[np.int8]

PREFIXES = CANDIDATE, EXCLUDED, POSITIVE, ANSWER, RELEVANT = (
    "candidate:",
    "excluded:",
    "positive:",
    "answer:",
    "relevant:",
)
KINDS: Mapping[LabelsAre, str] = {
    "candidates": CANDIDATE,
    "complementary": EXCLUDED,
    "positives": POSITIVE,
}
NAMES_COLUMNS = (*KINDS, "relevant")
STATE_COLUMNS = ("no", "yes", "maybe")
LONG = ("item", "label", "answer")
# Columns that may name items, the likeliest first, where a table is read for its labels alone:
# items are matched with the rows of a file of features, or are files of images.
ITEM_COLUMNS = ("item", "image", "file", "filename", "path")
MOST_LABEL_COLUMNS = 10_000

STATES = NO, YES, MAYBE, NOT_ASKED = tuple(
    state.word for state in (State.NO, State.YES, State.MAYBE, State.NOT_ASKED)
)
# Annotation tools accept what may be there: only those who ask for it know that it is a yes.
WORDS = {
    **dict.fromkeys(("no", "n", "surely not", "reject"), NO),
    **dict.fromkeys(("yes", "y"), YES),
    **dict.fromkeys(("maybe", "?", "perhaps", "unsure", "not sure", "accept"), MAYBE),
    **dict.fromkeys(("not asked", "", "skip", "ignore"), NOT_ASKED),
}
INDICATORS = {"0": 0, "1": 1, "0.0": 0, "1.0": 1, "false": 0, "true": 1}
TRUTHS = {**INDICATORS, "no": 0, "yes": 1, "n": 0, "y": 1}
GUESSES = {**WORDS, "0": NO, "false": NO, "1": YES, "true": YES}
EMPTY, UNKNOWN = -1, -2
MOST_WORDS = 20  # different words that may be answers


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
        wanted_labels, wanted_truth = _find_described(columns)
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
    if options.item is not None:
        item: str | None = find_columns(columns, [options.item])[0]
    else:
        possible = ITEM_COLUMNS if options.has_labels_alone else ITEM_COLUMNS[:1]
        free = {*columns} - {*ignored, *labels, *truth}
        item = next((name for name in possible if name in free), None)
    both = [name for name in labels if name in (*truth, item)]
    both += [name for name in truth if name == item]
    if both:
        raise ComesError(
            "a column holds labels, the truth or the names of items; got more than one for "
            f"{listed(both)}. Name other columns (--labels, --relevant, --item)."
        )
    if len(labels) + len(truth) > MOST_LABEL_COLUMNS:
        raise ComesError(
            f"{len(labels) + len(truth)} columns are named as labels, "
            f"{listed([*labels, *truth], 2)}; a table may have {MOST_LABEL_COLUMNS}. Name fewer "
            "(--labels, --relevant), or write the labels of a row in one column of names."
        )
    if not labels and (options.labels_are not in (None, "candidates") or options.words is not None):
        raise ComesError(
            "labels_are (--complementary) and words (--answers) apply to candidates, but only the "
            "truth is named. Name the columns of the candidates (--labels)."
        )
    in_words = options.words is not None or any(name.startswith(ANSWER) for name in labels)
    return Roles(labels, truth, ignored, item, _find_kind(labels, options), in_words)


def _find_kind(labels: Sequence[str], options: ReadOptions) -> LabelsAre:
    """Return what columns of labels mark, from the options or from their names."""
    named: dict[str, LabelsAre] = {
        name: kind
        for kind, prefix in KINDS.items()
        for name in labels
        if name == kind or name.startswith(prefix)
    }
    kinds = sorted({named.get(name, "candidates") for name in labels})
    if len(kinds) > 1:
        raise ComesError(
            f"labels are {' or '.join(kinds)}; got both: {listed(list(labels))}. Name columns of "
            "one kind."
        )
    if named and options.labels_are not in (None, kinds[0]):
        raise ComesError(
            f"the names of the columns say that they are {kinds[0]}, not {options.labels_are}: "
            f"{listed(list(named))}. Leave out labels_are (--{options.labels_are}), or name other "
            "columns (--labels)."
        )
    return next(iter(named.values()), options.labels_are or "candidates")


def _find_described(columns: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """Return the columns of labels and of the truth in a table with our column names."""

    def called(name: str | None, prefix: str) -> list[str]:
        return [c for c in columns if c.startswith(prefix)] or [c for c in columns if c == name]

    truth = called("relevant", RELEVANT)
    for name, prefix in (*KINDS.items(), (None, ANSWER)):
        if labels := called(name, prefix):
            return labels, truth
    states = [name for name in columns if name in STATE_COLUMNS]
    if "no" in states and len(states) > 1:
        return states, truth
    if truth:
        return [], truth
    raise ComesError(
        "which columns hold the labels? Name them (--labels, or --relevant for the truth, on the "
        "command line): columns of 0 and 1, or of no, yes and maybe; or one column of label names. "
        f"The columns are {listed(list(columns))}."
    )


class Labels(NamedTuple):
    """What a table says about labels."""

    answers: Answers | None
    truth: Marks | None
    names: list[str]


@dataclass(frozen=True)
class LabelReader:
    """Reads the label columns of a table in the form that its cells, or its first block, have."""

    roles: Roles
    options: ReadOptions = field(repr=False)
    in_words: bool  # no, yes, maybe and nothing, in a column for each label
    by_name: bool  # names of labels, in one column or in those called no, yes and maybe
    truth_by_name: bool
    separator: str | None  # of names of labels
    truth_separator: str | None

    @classmethod
    def find(cls, frame: pd.DataFrame, roles: Roles, options: ReadOptions) -> Self:
        """Find the form of the labels, from the options or from the cells."""
        labels, truth = frame[roles.labels], frame[roles.truth]
        in_words = bool(roles.labels) and (roles.in_words or _are_answers(labels))
        by_name = roles.are_state_sets or (_are_names(labels, INDICATORS) and not in_words)
        truth_by_name = _are_names(truth, TRUTHS)
        if options.separator is not None:
            named = [labels] * by_name + [truth] * truth_by_name
            check_separator(options.separator, [cells[c] for cells in named for c in cells])
        separators = (
            (options.separator or find_separator([cells[c] for c in cells], options.label_names))
            if is_names
            else None
            for cells, is_names in ((labels, by_name), (truth, truth_by_name))
        )
        return cls(roles, options, in_words, by_name, truth_by_name, *separators)

    @property
    def names_columns(self) -> list[str]:
        """The columns that hold names of labels."""
        return [*self.roles.labels * self.by_name, *self.roles.truth * self.truth_by_name]

    def list_names(self, frame: pd.DataFrame) -> set[str]:
        """Return every label name in the columns of names."""
        return {
            name
            for column in self.names_columns
            for row in _names_of_cells(
                frame[column],
                True,
                self.separator if column in self.roles.labels else self.truth_separator,
            )
            for name in row
        }

    def read(self, frame: pd.DataFrame) -> Labels:
        """Return what the columns say about labels."""
        roles, names = self.roles, self.options.label_names
        if names is None and self.by_name and self.truth_by_name:  # names of either are labels
            names = sorted(self.list_names(frame))
        answers = truth = None
        if roles.labels:
            answers = self._read_answers(frame[roles.labels], names)
            names = answers.label_names
        if roles.truth:
            cells = frame[roles.truth]
            if self.truth_by_name:
                sets = _names_of_cells(cells.iloc[:, 0], False, self.truth_separator, is_truth=True)
                truth, names = marks_of_sets(sets, names)
            else:
                truth, names = _order_labels(_read_indicators(cells, TRUTHS, True), cells, names)
        return Labels(answers, truth, list(names or ()))

    def _read_answers(self, cells: pd.DataFrame, names: Sequence[str] | None) -> Answers:
        """Return what the columns of labels say, with the names of the labels."""
        labels_are = self.roles.labels_are
        if (self.in_words or self.roles.are_state_sets) and labels_are != "candidates":
            raise ComesError(
                "the labels are answers, and 'no' excludes a label; leave out labels_are "
                f"(--{labels_are}), or say what the words mean (words; --answers)."
            )
        if self.in_words:
            # With our prefix a pair without an answer was not asked, even if all answers are no.
            is_ours = all(name.startswith(ANSWER) for name in cells.columns)
            codes, names = _order_labels(read_states(cells, self.options.words), cells, names)
            return Answers.from_codes(codes, "answers" if is_ours else find_kind(codes), names)
        if self.roles.are_state_sets:
            return _read_state_sets(cells, names, self.separator)
        if self.by_name:
            empty_is_none = labels_are != "candidates"
            sets = _names_of_cells(cells.iloc[:, 0], empty_is_none, self.separator)
            marked, names = marks_of_sets(sets, names)
        else:
            is_complete = labels_are != "positives"  # an empty cell is not ticked
            marked = _read_indicators(cells, INDICATORS, is_complete)
            marked, names = _order_labels(marked, cells, names)
        return answers_of_marks(marked, labels_are, names)

    def warn(self, labels: Labels) -> None:
        """Warn of answers that are all yes, and of names that are nearly the same."""
        if labels.answers is not None:
            warn_of_ticks(labels.answers)
        if self.options.label_names is not None or not self.names_columns:
            return
        is_similar = find_similar(labels.names)
        similar = [name for name, hit in zip(labels.names, is_similar, strict=True) if hit]
        if similar:
            warn_user(
                f"{len(similar)} labels differ from another in case or blanks alone: "
                f"{listed(sorted(similar, key=str.casefold))}. They are learned as different "
                "labels. If they are the same, correct the file."
            )


def _are_answers(cells: pd.DataFrame) -> bool:
    """Return whether columns hold words of answers; a single one, nothing else."""
    if cells.columns[0] in NAMES_COLUMNS:
        return False
    columns = (cells[c].dropna() for c in cells if not pd.api.types.is_numeric_dtype(cells[c]))
    texts = {text.strip().lower() for column in columns for text in column.map(str).unique()}
    words = {word for word in WORDS if word}
    return bool(texts & words) and (cells.shape[1] > 1 or texts <= {*words, ""})


def _are_names(cells: pd.DataFrame, words: Mapping[str, int]) -> bool:
    """Return whether labels are one column of names: by its own name, or not all cells 0 or 1.

    Empty cells among 0 and 1 do not make names of them.
    """
    if cells.shape[1] != 1:
        return False
    column = cells.iloc[:, 0].dropna()
    has_lists = any(isinstance(cell, (list, tuple, np.ndarray, dict)) for cell in column)
    if has_lists or column.name in NAMES_COLUMNS:
        return True
    texts = {_as_word(as_text(cell).strip()) for cell in column.unique()} - {""}
    return not texts or not texts <= set(words)


def _read_state_sets(
    cells: pd.DataFrame, wanted: Sequence[str] | None, separator: str | None
) -> Answers:
    """Return the answers of columns of label names that are called no, yes and maybe."""
    sets = {name: _names_of_cells(cells[name], True, separator) for name in cells.columns}
    names = wanted or sorted({name for rows in sets.values() for row in rows for name in row})
    if not names:
        raise ComesError(f"no label stands in the columns {', '.join(sets)}; expected names.")
    nothing: list[list[str]] = [[] for _ in range(len(cells))]
    masks = [marks_of_sets(sets.get(name, nothing), names)[0] for name in STATE_COLUMNS]
    if not all(map(sparse.issparse, masks)):
        masks = [fill_marks(mask, "answers", "List fewer labels.") for mask in masks]
    return Answers(*masks, label_names=names)


def find_kind(codes: Codes) -> Kind:
    """Return what a pair without an answer means: not asked, or still possible if all say no."""
    return "answers" if np.isin(codes, (State.YES, State.MAYBE)).any() else "candidates"


def read_states(cells: pd.DataFrame, words: Mapping[str, str] | None = None) -> Codes:
    """Return the `State` that each cell says, (n, q); raise if there are unknown words."""
    meanings = {word: int(State.of_word(state)) for word, state in (words or WORDS).items()}
    codes, unknown = _read_codes(cells, meanings, ignores_case=words is None)
    if unknown:
        expected = "no, yes, maybe or nothing (not asked)"
        if words is not None:
            expected = f"{listed([word for word in words if word])} or nothing (not asked)"
        raise _ask_for_words(unknown, cells, expected, words)
    return np.where(codes == EMPTY, np.int8(State.NOT_ASKED), codes)


def _read_indicators(cells: pd.DataFrame, words: Mapping[str, int], is_complete: bool) -> Any:
    """Return which cells are 1, (n, q); empty cells are an error if all must be known."""
    codes, unknown = _read_codes(cells, words)
    is_empty, is_truth = codes == EMPTY, words is TRUTHS
    if unknown and is_truth:
        raise ComesError(
            f"the truth is 0 or 1, or yes or no; got {_show_words(unknown)} in the columns "
            f"{listed(list(cells.columns), 3)}. Correct them, or name other columns (--relevant)."
        )
    if unknown:
        raise _ask_for_words(unknown, cells, "0 and 1, or no, yes, maybe and nothing")
    if is_complete and is_empty.any():
        if is_empty.all():
            shown = listed(list(cells.columns), 3)
            raise ComesError(f"the label columns {shown} are empty. Name others, or fill them in.")
        label = int(is_empty.any(axis=0).argmax())
        row = cells.index[is_empty[:, label].argmax()]
        advice = "If 1 and 0 are answers, and an empty cell was not asked, say so: words={'1': "
        advice += "'yes', '0': 'no'} (--answers 1=yes,0=no on the command line)."
        if is_truth:
            advice = "The truth must be known: fill it in, or leave the row out."
        raise ComesError(
            f"label column {cells.columns[label]!r} must be 0 or 1; row {row} is empty "
            f"({is_empty.sum()} of {is_empty.size} cells of the label columns are). {advice}"
        )
    return codes == 1


def _read_codes(
    cells: pd.DataFrame, meanings: Mapping[str, int], ignores_case: bool = True
) -> tuple[Codes, Counter[str]]:
    """Return what each cell means, (n, q), `EMPTY` or `UNKNOWN`, and how often others occur."""
    known = {_as_word(word, ignores_case): code for word, code in meanings.items()}
    codes, unknown = np.empty(cells.shape, dtype=np.int8), Counter[str]()
    for label in range(cells.shape[1]):
        places, distinct = pd.factorize(cells.iloc[:, label], use_na_sentinel=False)
        texts = [as_text(cell).strip() for cell in distinct]
        found = [known.get(_as_word(t, ignores_case), UNKNOWN if t else EMPTY) for t in texts]
        codes[:, label] = np.array(found, dtype=np.int8)[places]
        for text, code, n_cells in zip(texts, found, np.bincount(places), strict=True):
            if code == UNKNOWN:
                unknown[text] += int(n_cells)
    return codes, unknown


def _as_word(text: str, ignores_case: bool = True) -> str:
    """Return a cell as words are looked up: a number is the same if it is written 0 or 0.0."""
    try:
        return f"{float(text):.15g}"
    except ValueError:
        return text.lower() if ignores_case else text


def _show_words(words: Mapping[str, int]) -> str:
    shown = [f"{word!r} ({counted(n, 'cell')})" for word, n in list(words.items())[:5]]
    return ", ".join(shown) + (f" and {len(words) - 5} more" if len(words) > 5 else "")


def _ask_for_words(
    unknown: Counter[str],
    cells: pd.DataFrame,
    expected: str,
    words: Mapping[str, str] | None = None,
) -> ComesError:
    """Return the error that asks what words of answers mean, with the option to paste."""
    names = list(map(str, cells.columns))
    columns = f"column {names[0]!r}" if len(names) == 1 else f"columns {listed(names, 3)}"
    message = f"{columns} should hold {expected}; found "
    shown = _show_words(dict(unknown.most_common()))
    if len(unknown) > MOST_WORDS:
        return ComesError(
            f"{message}{len(unknown)} other words, such as {shown}. Name other columns (--labels)."
        )
    texts = sorted(
        {as_text(cell).strip() for name in names for cell in cells[name].unique()} - {""}
    )
    pairs = {word: (words or GUESSES).get(word if words else word.lower(), "...") for word in texts}
    line = ",".join(f"{word}={state}" for word, state in pairs.items())
    return ComesError(
        f"{message}{shown}. Say what each word means, yes, no, maybe or not asked: words={{...}}, "
        f"or --answers '{line}' on the command line."
    )


def _order_labels(
    values: npt.NDArray[Any], cells: pd.DataFrame, wanted: Sequence[str] | None
) -> tuple[npt.NDArray[Any], list[str]]:
    """Return the labels in the order wanted, and their names, without a prefix that all have."""
    names = list(cells.columns)
    for prefix in PREFIXES:
        if all(name.startswith(prefix) for name in names):
            names = [name.removeprefix(prefix) for name in names]
            break
    if wanted is None:
        return values, names
    return values[:, match_names(names, wanted)], list(wanted)


def _names_of_cells(
    cells: "pd.Series[Any]", empty_is_none: bool, separator: str | None, is_truth: bool = False
) -> list[list[str]]:
    """Return the label names in every cell."""
    sets: list[list[str]] = []
    parsed: dict[str, list[str]] = {}
    are_lists, empty = separator == LIST, []
    for row, cell in zip(cells.index, cells, strict=True):
        is_list = isinstance(cell, (list, tuple, np.ndarray))
        if isinstance(cell, (dict, bytes)) or (is_list and not _are_all_texts(cell)):
            raise ComesError(f"row {row} has {cell!r}; expected names of labels.")
        if is_list:
            are_lists, names = True, [as_text(name).strip() for name in cell]
        else:
            text = as_text(cell)
            if text not in parsed:
                parsed[text] = split_cell(text, separator)
            names = parsed[text]
            if not names and not (separator == LIST and text.strip()):
                empty.append(row)
        if NOTHING in (name.lower() for name in names):
            if len(names) > 1:
                raise ComesError(f"row {row} has {NOTHING} beside other labels; keep one of them.")
            names = []
        sets.append(names)
    if empty and not empty_is_none:
        meaning = "if nobody was asked, every label is possible: list them all"
        if is_truth:
            meaning = "if the truth is not known, leave the row out"
        raise ComesError(
            f"{counted(len(empty), 'cell')} of label names in column {cells.name!r} "
            f"{'is' if len(empty) == 1 else 'are'} empty (first: row {empty[0]}), which may mean "
            f"two things. If no label applies, write {NOTHING}; {meaning}."
        )
    lengths = {len(names) for names in sets}
    names_in_lists = {name for names in sets for name in names} if are_lists else set()
    if names_in_lists and len(lengths) == 1 < max(lengths) and names_in_lists <= {*INDICATORS}:
        raise ComesError(
            f"expected names of labels; got lists of {max(lengths)} numbers, 0 or 1. Write a "
            "column for every label."
        )
    return sets


def _are_all_texts(cells: Any) -> bool:
    kinds = (str, int, float, np.integer)
    return all(isinstance(cell, kinds) and as_text(cell).strip() for cell in cells)


def warn_of_ticks(answers: Answers) -> None:
    """Warn if every answer is yes, as if labels were ticked and nobody could say no."""
    is_yes = answers.has(State.YES) and not (answers.has(State.NO) or answers.has(State.MAYBE))
    if answers.kind == "answers" and is_yes:
        warn_user(
            "every answer is 'yes'. If labels were ticked and nobody could say no, read them as "
            "such (labels_are='positives'; --positives on the command line)."
        )


def find_similar(names: Sequence[str]) -> npt.NDArray[np.bool_]:
    """Return which names differ from another in case or blanks alone, (n_labels,)."""
    plain = ["".join(unicodedata.normalize("NFKC", name).casefold().split()) for name in names]
    return np.asarray(pd.Series(plain, dtype=object).duplicated(keep=False), dtype=bool)
