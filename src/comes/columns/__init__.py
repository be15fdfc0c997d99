"""Tables as people have them: what every column is, and one matrix of numbers made of them."""

from comes.columns.column_encoder import ColumnEncoder, encode_table, match_by_name
from comes.columns.column_kinds import Column, describe_columns, find_item_column, needs_encoding
from comes.columns.embeddings import Embedding, embed_texts, open_embedding

__all__ = [
    "Column",
    "ColumnEncoder",
    "Embedding",
    "describe_columns",
    "embed_texts",
    "encode_table",
    "find_item_column",
    "match_by_name",
    "needs_encoding",
    "open_embedding",
]
