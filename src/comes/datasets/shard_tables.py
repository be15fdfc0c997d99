"""Shards that are tables: what their columns are is found in the first block, and holds for all."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from comes.answers import Answers
from comes.answers.matrix import Kind
from comes.columns import find_item_column, needs_encoding
from comes.datasets.answer_tables import LONG
from comes.datasets.column_roles import Roles, find_roles
from comes.datasets.dataset import Dataset
from comes.datasets.label_forms import (
    LabelForm,
    Labels,
    find_form,
    list_names,
    read_label_cells,
    warn_of_labels,
)
from comes.datasets.reading import Reading
from comes.datasets.shard_blocks import CSV_ENDINGS, Block
from comes.datasets.shard_files import ShardFile
from comes.datasets.shard_frames import find_codes, read_csv_head, read_frame
from comes.datasets.table_datasets import find_features
from comes.datasets.tables import NAMELESS, find_columns, is_numeric, item_names, no_column
from comes.errors import ComesError, listed

CLASS = "cls"  # the ending of a file that names the label of a picture in a tar file


@dataclass(frozen=True)
class TablePlan:
    """How the blocks of a table are read."""

    columns: tuple[str, ...]  # of the first block
    roles: Roles
    reading: Reading
    form: LabelForm
    delimiter: str
    texts: tuple[str, ...]  # columns that are read as they are written
    words: tuple[str, ...]  # feature columns that do not hold numbers
    numbers: tuple[str, ...]
    is_table: bool  # features are more than complete numbers
    kind: Kind | None
    most_rows: int

    @property
    def features(self) -> list[str]:
        """The columns to learn from."""
        return list(self.reading.feature_columns or ())

    def read_cells(
        self, file: ShardFile, block: Block, columns: Sequence[str] | None = None
    ) -> tuple[Any, pd.DataFrame]:
        """Return the pictures of a block, if it has any, and its columns as a table."""
        images, frame = read_frame(
            file, block, self.most_rows, self.delimiter, self.texts, self.words, columns
        )
        if images is not None or file.ending.startswith(".jsonl"):
            others = [name for name in frame.columns if name not in self.columns]
            frame = frame.reindex(columns=[*self.columns, *others])
        missing = [c for c in columns or self.columns if c not in frame]
        if missing:
            raise ComesError(f"{file.name}: {no_column(missing[0], list(frame.columns))}")
        names = [str(name) for name in frame.columns]
        extra = [c for c in names if c not in self.columns and not NAMELESS.fullmatch(c)]
        if extra:
            raise ComesError(
                f"{file.name} has the columns {listed(extra)}, which the first block does not "
                "have. Write the same columns in every shard."
            )
        return images, frame

    def load(self, file: ShardFile, block: Block) -> Dataset:
        """Return the rows of a block as a data set."""
        used = [*self.roles.labels, *self.roles.truth, *self.features]
        used += [] if self.roles.item is None else [self.roles.item]
        images, frame = self.read_cells(file, block, used)
        frame = frame.assign(**_read_numbers(self, frame, file, block))
        try:
            labels = read_label_cells(frame, self.roles, self.reading, self.form)
            item = self.roles.item
            items = None if item is None else item_names(frame, item)
            return Dataset(
                self._select(frame) if images is None else images,
                labels.names,
                relevant=labels.truth,
                items=items,
                from_complementary=self.roles.labels_are == "complementary",
                answers=self._as_kind(labels.answers),
            )
        except ComesError as error:
            where = f", rows counted from {block.first}" if block.first else ""
            raise ComesError(f"{file.name}{where}: {error}") from None

    def _select(self, frame: pd.DataFrame) -> Any:
        """Return the features of a block: a table, or an array if all are complete numbers."""
        if not self.features:
            return None
        cells = frame[self.features]
        if self.is_table:
            return cells
        is_small = all(dtype == np.float32 for dtype in cells.dtypes)
        return cells.to_numpy(dtype=np.float32 if is_small else np.float64)

    def _as_kind(self, answers: Answers | None) -> Answers | None:
        """Return answers of the kind of the first block; a block alone cannot know it."""
        if answers is None or answers.kind == self.kind:
            return answers
        if self.kind == "answers":
            if answers.is_sparse:
                return Answers.from_codes(answers.states, "answers", answers.label_names)
            return Answers.from_codes(answers.codes, "answers", answers.label_names)
        raise ComesError(
            f"the labels are {answers.kind} here, and {self.kind} in the first block, where every "
            "answer is 'no'. Call their columns answer:NAME, or put a block with other answers "
            "first."
        )


def _read_numbers(
    plan: TablePlan, frame: pd.DataFrame, file: ShardFile, block: Block
) -> dict[str, Any]:
    """Return the columns that must hold numbers and are stored otherwise; raise if they do not."""
    found: dict[str, Any] = {}
    for name in plan.numbers:
        cells = frame[name]
        if not is_numeric(cells):
            cells = pd.to_numeric(cells, errors="coerce")
            found[name] = cells.astype(np.float64)
        wrong = (cells.isna() & frame[name].notna()).to_numpy(dtype=bool)
        advice = "If it is a category, say so (category; --category on the command line)."
        if not plan.is_table and not wrong.any():
            wrong = ~np.isfinite(cells.to_numpy(dtype=np.float64, na_value=np.nan))
            advice = "Fill it in, or let a shard with such a gap come first."
        if wrong.any():
            row = int(wrong.argmax())
            cell = frame[name].iloc[row]
            raise ComesError(
                f"column {name!r} of {file.name} must hold numbers, as in the first block; got "
                f"{'nothing' if pd.isna(cell) else repr(cell)} at row {block.first + row}. {advice}"
            )
    return found


def plan_tables(file: ShardFile, block: Block, reading: Reading, most_rows: int) -> TablePlan:
    """Return how tables are read, as the first block says."""
    delimiter, codes = "", []
    if file.ending in CSV_ENDINGS:
        delimiter = read_csv_head(file)[1]
        codes = find_codes(file, block, delimiter)
    images, frame = read_frame(file, block, most_rows, delimiter)
    columns = list(frame.columns)
    refuse_long(columns, reading, file)
    if images is not None and reading.labels is None and reading.relevant is None:
        reading = replace(reading, relevant=[CLASS]) if CLASS in columns else reading
    roles = find_roles(columns, reading)
    words = find_columns(columns, reading.word_columns) + codes
    texts = tuple({*roles.text_columns, *words})
    if file.ending in CSV_ENDINGS:
        _, frame = read_frame(file, block, most_rows, delimiter, texts)
    form = find_form(frame, roles, reading)
    labels = read_label_cells(frame, roles, reading, form)
    warn_of_labels(labels, reading, form)
    features: list[str] = []
    if images is None:
        features = list(reading.feature_columns or find_features(frame, roles, labels.names, words))
        if roles.item is None:
            others = frame[roles.find_features(columns)]
            roles = replace(roles, item=find_item_column(others))
    return _fill_in(
        frame,
        labels,
        features,
        TablePlan(
            tuple(columns), roles, reading, form, delimiter, texts, (), (), False, None, most_rows
        ),
    )


def _fill_in(
    frame: pd.DataFrame, labels: Labels, features: Sequence[str], plan: TablePlan
) -> TablePlan:
    """Return a plan that knows its features and the kind of its answers."""
    for name in features:
        if name not in frame:
            raise no_column(name, list(frame.columns))
    given = plan.texts
    numbers = [name for name in features if is_numeric(frame[name]) and name not in given]
    return replace(
        plan,
        reading=replace(plan.reading, feature_columns=features),
        words=tuple(name for name in features if name not in numbers and name not in given),
        numbers=tuple(numbers),
        is_table=bool(features) and needs_encoding(frame[list(features)]),
        kind=None if labels.answers is None else labels.answers.kind,
    )


def refuse_long(columns: Sequence[str], reading: Reading, file: ShardFile) -> None:
    """Raise if a table has a row for every answer: those about an item may lie in other shards."""
    is_described = reading.labels is not None or reading.relevant is not None
    if reading.long is not None or (set(LONG) <= set(columns) and not is_described):
        raise ComesError(
            f"{file.name} has a row for every answer, and shards need a row for every item, with "
            "its features. Read it whole, or group it by item first."
        )


def gather_names(plan: TablePlan, rows: Iterable[tuple[ShardFile, Block]]) -> list[str] | None:
    """Return all names of labels, sorted, from one pass; None if they are known without."""
    form, roles = plan.form, plan.roles
    if plan.reading.label_names is not None or not (form.by_name or form.truth_by_name):
        return None
    wanted = [*(roles.labels if form.by_name else ()), *(roles.truth if form.truth_by_name else ())]
    found: set[str] = set()
    for file, block in rows:
        found |= list_names(plan.read_cells(file, block, wanted)[1], roles, form)
    return sorted(found)
