"""Texts of a table as features: vectors of an embedding that has a name."""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Self

import numpy as np

from comes.columns.column_kinds import Column
from comes.columns.embeddings import Embedding, embed_texts, open_embedding
from comes.columns.encoded_columns import Encoded, Part
from comes.columns.raw_cells import Cells, read_texts

FEW_TEXTS = 1000  # fewer are computed again rather than kept on disk


@dataclass(frozen=True)
class EmbeddingPart(Part):
    """The vectors of a text; the model stores the name and checksum of the embedding, not it."""

    kind: ClassVar[str] = "embedding"

    embedding: str  # its name
    checksum: str
    n_features: int

    @classmethod
    def look_up(cls, column: Column, name: str) -> Self:
        """Return the part of an embedding; nothing is learned from cells."""
        found = open_embedding(name)
        return cls(column.name, name, found.checksum, found.n_features)

    @property
    def names(self) -> list[str]:
        """The names of the features."""
        return [f"{self.column}: {number}" for number in range(self.n_features)]

    @cached_property
    def _opened(self) -> Embedding:
        """The embedding, if it is still the one of the training."""
        return open_embedding(self.embedding, self.checksum)

    def encode(self, cells: Cells) -> Encoded:
        """Return the features of some cells, (n, n_features)."""
        texts = read_texts(cells)
        vectors = embed_texts(texts, self._opened, cache=len(texts) >= FEW_TEXTS)
        return Encoded(np.asarray(vectors))
