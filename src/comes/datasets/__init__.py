"""Data sets: by name, from files of many formats, and embedded scenes of digits.

`KNOWN` holds the data sets that have a name. A table of answers has the columns `LONG`; an answer
is `NO`, `YES`, `MAYBE` or `NOT_ASKED`, a column `PERSON` says whose it is, and a column `SOURCE`
says `MODEL`, or another of `BY_MODEL`, if a model chose the question. A table names its items in
one of `ITEM_COLUMNS`. `TableForm` is the form of the labels in a table that is written. Names of
images end in one of `PICTURE_ENDINGS`.
"""

from comes.datasets.answer_tables import (
    BY_MODEL,
    LONG,
    MODEL,
    PERSON,
    SOURCE,
    answers_of,
    combine_answers,
)
from comes.datasets.answer_words import MAYBE, NO, NOT_ASKED, YES, as_text
from comes.datasets.archive import write_npz
from comes.datasets.catalogue import KNOWN
from comes.datasets.column_roles import ITEM_COLUMNS
from comes.datasets.dataset import Dataset
from comes.datasets.feature_matrices import take_rows
from comes.datasets.feature_writing import check_feature_target, write_features
from comes.datasets.findings import Finding, check_dataset
from comes.datasets.image_formats import PICTURE_ENDINGS, import_pillow
from comes.datasets.images import (
    Images,
    image_names,
    open_images,
)
from comes.datasets.joining import join_features, join_rows
from comes.datasets.long_writing import long_table
from comes.datasets.opening import (
    load_dataset,
    open_dataset,
    read_dataset,
    read_features,
    read_images,
)
from comes.datasets.prediction_tables import (
    Predictions,
    check_item_column,
    check_prediction_name,
    prediction_table,
    read_predictions,
    write_prediction_table,
)
from comes.datasets.reading import Reading, as_reading
from comes.datasets.row_files import RowFile, find_copies, open_row_file
from comes.datasets.scenes import make_scenes
from comes.datasets.sharded import ShardedDataset, open_shards
from comes.datasets.table_datasets import TableForm, list_roles
from comes.datasets.tables import check_table_name, is_table_name, read_table, write_table
from comes.datasets.top_tables import check_top, top_table, write_top_tables
from comes.datasets.truth_files import open_truth
from comes.datasets.writing import check_writable, write_dataset

__all__ = [
    "BY_MODEL",
    "ITEM_COLUMNS",
    "KNOWN",
    "LONG",
    "MAYBE",
    "MODEL",
    "NO",
    "NOT_ASKED",
    "PERSON",
    "PICTURE_ENDINGS",
    "SOURCE",
    "YES",
    "Dataset",
    "Finding",
    "Images",
    "Predictions",
    "Reading",
    "RowFile",
    "ShardedDataset",
    "TableForm",
    "answers_of",
    "as_reading",
    "as_text",
    "check_dataset",
    "check_feature_target",
    "check_item_column",
    "check_prediction_name",
    "check_table_name",
    "check_top",
    "check_writable",
    "combine_answers",
    "find_copies",
    "image_names",
    "import_pillow",
    "is_table_name",
    "join_features",
    "join_rows",
    "list_roles",
    "load_dataset",
    "long_table",
    "make_scenes",
    "open_dataset",
    "open_images",
    "open_row_file",
    "open_shards",
    "open_truth",
    "prediction_table",
    "read_dataset",
    "read_features",
    "read_images",
    "read_predictions",
    "read_table",
    "take_rows",
    "top_table",
    "write_dataset",
    "write_features",
    "write_npz",
    "write_prediction_table",
    "write_table",
    "write_top_tables",
]
