"""What the label columns of a table say, read and written.

Labels come in one of three forms:

- wide: a column per label, 0/1, or "no", "yes", "maybe" and nothing for not asked;
- names: one column of label names ("apple;plate"), or one for each of no, yes and maybe;
- long: the columns item, label and answer, a row per answer (`comes.datasets.long`).

One column is taken for names unless all its cells are 0 or 1, or answers. An empty cell of names is
refused in candidates and in the truth, where it could mean that nothing applies or that nobody was
asked: ``(none)`` says the first. Elsewhere an empty cell says nothing.
"""

import contextlib
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import sparse

from comes.answers import Answers, State
from comes.answers.convert import match_names
from comes.answers.matrix import Kind
from comes.datasets.dataset import Dataset
from comes.datasets.indicators import (
    Marks,
    answers_of_marks,
    fill_marks,
    find_sets,
    marks_of_sets,
    marks_of_state,
)
from comes.datasets.options import ReadOptions
from comes.datasets.roles import (
    ANSWER,
    CANDIDATE,
    EXCLUDED,
    NAMES_COLUMNS,
    POSITIVE,
    PREFIXES,
    RELEVANT,
    STATE_COLUMNS,
    Roles,
)
from comes.datasets.separators import (
    LIST,
    NOTHING,
    SEPARATOR,
    check_separator,
    find_separator,
    split_cell,
)
from comes.datasets.table import as_text
from comes.errors import ComesError, counted, listed, warn_user

Codes = npt.NDArray[np.int8]
Scalar = TypeVar("Scalar", bound=np.generic)

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
FORMS = "Write .npz, or the form 'names' or 'long' (--form)."


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
    texts = {as_text(cell).strip().lower() for cell in column.unique()} - {""}
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
    """Return what each cell means, (n, q), `EMPTY` or `UNKNOWN`, and how often unknown words occur.

    A number means the same however it is written, 0 or 0.0.
    """
    numbers = {}
    for word, code in meanings.items():
        with contextlib.suppress(ValueError):
            numbers[float(word)] = code
    codes, unknown = np.empty(cells.shape, dtype=np.int8), Counter[str]()
    for label in range(cells.shape[1]):
        places, distinct = pd.factorize(cells.iloc[:, label], use_na_sentinel=False)
        column, n_cells = np.empty(len(distinct), dtype=np.int8), np.bincount(places)
        for place, cell in enumerate(distinct):
            text = as_text(cell).strip()
            meaning = meanings.get(text.lower() if ignores_case else text)
            if meaning is None and text:
                with contextlib.suppress(ValueError):
                    meaning = numbers.get(float(text))
            if meaning is None:
                meaning = UNKNOWN if text else EMPTY
            column[place] = meaning
            if meaning == UNKNOWN:
                unknown[text] += int(n_cells[place])
        codes[:, label] = column[places]
    return codes, unknown


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
    values: npt.NDArray[Scalar], cells: pd.DataFrame, wanted: Sequence[str] | None
) -> tuple[npt.NDArray[Scalar], list[str]]:
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
        if isinstance(cell, (list, tuple, np.ndarray)):
            are_lists, names = True, _read_name_list(cell, row)
        elif isinstance(cell, (dict, bytes)):
            raise ComesError(f"row {row} has {cell!r}; expected names of labels.")
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


def _read_name_list(cell: Any, row: int) -> list[str]:
    """Return the names in a cell of a parquet file that is a list."""
    names = [as_text(name).strip() for name in cell]
    if "" in names or not all(isinstance(name, (str, int, float, np.integer)) for name in cell):
        raise ComesError(f"row {row} has a list of something other than names: {cell!r}.")
    return names


def warn_of_ticks(answers: Answers) -> None:
    """Warn if every answer is yes, as if labels were ticked and nobody could say no."""
    counts = {state: answers.count_state(state).any() for state in (State.NO, State.MAYBE)}
    if answers.kind == "answers" and not any(counts.values()) and answers.has(State.YES):
        warn_user(
            "every answer is 'yes'. If labels were ticked and nobody could say no, read them as "
            "such (labels_are='positives'; --positives on the command line)."
        )


def find_similar(names: Sequence[str]) -> npt.NDArray[np.bool_]:
    """Return which names differ from another in case or blanks alone, (n_labels,)."""
    plain = ["".join(unicodedata.normalize("NFKC", name).casefold().split()) for name in names]
    return np.asarray(pd.Series(plain, dtype=object).duplicated(keep=False), dtype=bool)


def wide_columns(dataset: Dataset) -> pd.DataFrame:
    """Return the labels as a column each, named so that they can be read without options."""
    parts, answers = [], dataset.answers
    if answers is not None and answers.kind == "answers":
        words = np.array(["", *(State(code).word for code in (1, 2, 3))], dtype=object)
        parts.append((ANSWER, words[answers.codes]))
    elif answers is not None and answers.kind == "positives":
        parts.append((POSITIVE, answers.confirmed.astype(np.int8)))
    elif answers is not None and dataset.from_complementary:
        parts.append((EXCLUDED, answers.excluded.astype(np.int8)))
    elif answers is not None:
        parts.append((CANDIDATE, answers.candidates.astype(np.int8)))
    if dataset.relevant is not None:
        relevant = fill_marks(dataset.relevant, "a column for each label", FORMS)
        parts.append((RELEVANT, relevant.astype(np.int8)))
    frames = [
        pd.DataFrame(values, columns=[prefix + name for name in dataset.label_names])
        for prefix, values in parts
    ]
    return pd.concat(frames, axis=1)


def named_labels(dataset: Dataset) -> dict[str, Marks]:
    """Return the labels that each column of names marks; of sparse candidates, the others."""
    columns, answers = {}, dataset.answers
    if answers is not None and answers.kind == "answers":
        states = (State.NO, State.YES, State.MAYBE)
        columns = {state.word: marks_of_state(answers, state) for state in states}
    elif answers is not None and answers.kind == "positives":
        columns["positives"] = marks_of_state(answers, State.YES)
    elif answers is not None and (dataset.from_complementary or answers.is_sparse):
        columns["complementary"] = marks_of_state(answers, State.NO)
    elif answers is not None:
        columns["candidates"] = answers.candidates
    if dataset.relevant is not None:
        columns["relevant"] = dataset.relevant
    return columns


def names_columns(dataset: Dataset) -> pd.DataFrame:
    """Return the labels as columns of names; raise if they would not be read as they are."""
    for name in dataset.label_names:
        if split_cell(name, SEPARATOR) != [name] or name.lower() == NOTHING:
            raise ComesError(
                f"the label {name!r} cannot be one of names joined by {SEPARATOR!r}. Write another "
                "form."
            )
    frame = pd.DataFrame(
        {
            column: [SEPARATOR.join(s) or NOTHING for s in find_sets(marked, dataset.label_names)]
            for column, marked in named_labels(dataset).items()
        }
    )
    groups = [list(STATE_COLUMNS)] if "no" in frame else [[c] for c in frame if c != "relevant"]
    groups += [["relevant"]] if "relevant" in frame else []
    try:
        is_clear = all(find_separator([frame[c] for c in g]) == SEPARATOR for g in groups)
    except ComesError:
        is_clear = False
    if not is_clear:
        raise ComesError(
            "the names of the labels would not be told apart in one cell: something else than "
            f"{SEPARATOR!r} seems to separate them. Write another form."
        )
    return frame
