"""Tables as people have them: what every column is, and one matrix of numbers made of them.

What is here is loaded on first use: who only looks at columns does not wait for scikit-learn.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from comes.tables.columns import Column, describe_columns
    from comes.tables.columns import find_item_column as find_item_column
    from comes.tables.columns import needs_encoding as needs_encoding
    from comes.tables.encoder import SAMPLE_ROWS as SAMPLE_ROWS
    from comes.tables.encoder import ColumnEncoder
    from comes.tables.encoder import EncoderFold as EncoderFold
    from comes.tables.encoder import RowSample as RowSample
    from comes.tables.encoder import encode_table as encode_table
    from comes.tables.encoder import match_by_name as match_by_name
    from comes.tables.texts import Embedding, embed_texts, open_embedding

_MODULES = {
    "columns": ("Column", "describe_columns", "find_item_column", "needs_encoding"),
    "texts": ("Embedding", "embed_texts", "open_embedding"),
}

__all__ = [
    "Column",
    "ColumnEncoder",
    "Embedding",
    "describe_columns",
    "embed_texts",
    "open_embedding",
]


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(f"module 'comes.tables' has no attribute {name!r}")
    module = next((module for module, names in _MODULES.items() if name in names), "encoder")
    return getattr(import_module(f"comes.tables.{module}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
