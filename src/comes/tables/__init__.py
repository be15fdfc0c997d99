"""Tables as people have them: what every column is, and one matrix of numbers made of them."""

from typing import TYPE_CHECKING, Any

from comes.tables.columns import Column, describe_columns

if TYPE_CHECKING:
    from comes.tables.encoder import ColumnEncoder

__all__ = ["Column", "ColumnEncoder", "describe_columns"]


def __getattr__(name: str) -> Any:
    """Import the encoder on first use: who only looks at columns does not wait for scikit-learn."""
    if name != "ColumnEncoder":
        raise AttributeError(f"module 'comes.tables' has no attribute {name!r}")
    from comes.tables.encoder import ColumnEncoder

    return ColumnEncoder
