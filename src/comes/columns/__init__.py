"""Tables as people have them: what every column is, and one matrix of numbers made of them."""

from comes.columns.column_encoder import ColumnEncoder, encode_table, match_by_name
from comes.columns.column_kinds import Column, describe_columns, find_item_column, needs_encoding

__all__ = [
    "Column",
    "ColumnEncoder",
    "describe_columns",
    "encode_table",
    "find_item_column",
    "match_by_name",
    "needs_encoding",
]
