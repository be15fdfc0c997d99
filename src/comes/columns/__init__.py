"""Tables as people have them: what every column is, and one matrix of numbers made of them.

What is here is loaded on first use: who only looks at columns does not wait for scikit-learn.
`SAMPLE_ROWS` of a stream are what an encoder is fitted on.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from comes.columns.column_encoder import ColumnEncoder, encode_table, match_by_name
    from comes.columns.column_kinds import (
        Column,
        describe_columns,
        find_item_column,
        needs_encoding,
    )
    from comes.columns.embeddings import Embedding, embed_texts, open_embedding
    from comes.columns.encoder_fold import SAMPLE_ROWS, EncoderFold, RowSample

_MODULES = {
    "Column": "column_kinds",
    "ColumnEncoder": "column_encoder",
    "Embedding": "embeddings",
    "EncoderFold": "encoder_fold",
    "RowSample": "encoder_fold",
    "SAMPLE_ROWS": "encoder_fold",
    "describe_columns": "column_kinds",
    "embed_texts": "embeddings",
    "encode_table": "column_encoder",
    "find_item_column": "column_kinds",
    "match_by_name": "column_encoder",
    "needs_encoding": "column_kinds",
    "open_embedding": "embeddings",
}

__all__ = [
    "SAMPLE_ROWS",
    "Column",
    "ColumnEncoder",
    "Embedding",
    "EncoderFold",
    "RowSample",
    "describe_columns",
    "embed_texts",
    "encode_table",
    "find_item_column",
    "match_by_name",
    "needs_encoding",
    "open_embedding",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'comes.columns' has no attribute {name!r}")
    return getattr(import_module(f"comes.columns.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
