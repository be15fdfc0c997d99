"""Static vectors of words or tokens: the vector of a text is their mean, of length 1.

Vectors come as a text file (GloVe, fastText, word2vec: a word and its numbers on every line), as an
.npz file with ``words`` and ``vectors``, or as a .safetensors file with a ``tokenizer.json``, as
model2vec and WordLlama have them.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from comes.errors import ComesError

Vectors = npt.NDArray[np.float32]

WORD = re.compile(r"\w+(?:['\N{RIGHT SINGLE QUOTATION MARK}]\w+)*|[^\w\s]")
TEXT_ENDINGS = (".txt", ".vec")
TOKENIZER = "tokenizer.json"


@dataclass(frozen=True, eq=False)
class StaticVectors:
    """A vector for each token, and how a text is split into tokens.

    Parameters
    ----------
    vectors : float array of shape (n_tokens, n_features)
    split : callable list of texts -> list of lists of int
        The rows of ``vectors`` that belong to each text.
    """

    vectors: Vectors
    split: Callable[[Sequence[str]], list[list[int]]]

    @property
    def n_features(self) -> int:
        """The length of a vector."""
        return int(self.vectors.shape[1])

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return the mean vectors of texts, (n, n_features), of length 1 or, without a token, 0."""
        found = np.zeros((len(texts), self.n_features), dtype=np.float32)
        for row, tokens in enumerate(self.split(texts)):
            if tokens:
                found[row] = self.vectors[tokens].astype(np.float32).mean(axis=0)
        return normalise(found)


def normalise(vectors: Vectors) -> Vectors:
    """Return vectors divided by their length; those of length 0 stay as they are."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    scaled: Vectors = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
    return scaled


def read_word_vectors(path: Path) -> StaticVectors:
    """Read vectors of words, from a text file or an .npz file."""
    words, vectors = _read_npz(path) if path.suffix == ".npz" else _read_text(path)
    if not np.isfinite(vectors).all():
        raise ComesError(f"{path} should hold finite numbers, and some are not.")
    return StaticVectors(vectors, _WordSplitter({word: row for row, word in enumerate(words)}))


@dataclass(frozen=True)
class _WordSplitter:
    """Split texts into words, and look them up as they are written, then in lower case."""

    places: dict[str, int]

    def __call__(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the rows of the words that are known."""
        return [self._find_words(text) for text in texts]

    def _find_words(self, text: str) -> list[int]:
        found = []
        for word in WORD.findall(text):
            place = self.places.get(word)
            if place is None:
                place = self.places.get(word.lower())
            if place is not None:
                found.append(place)
        return found


def _read_text(path: Path) -> tuple[list[str], Vectors]:
    """Return words and vectors of a file with "word 0.1 0.2 ..." on every line."""
    words, rows, width = [], [], None
    try:
        with open(path, encoding="utf-8") as file:
            for number, line in enumerate(file, start=1):
                cells = line.rstrip().split(" ")
                if number == 1 and len(cells) == 2 and all(cell.isdigit() for cell in cells):
                    continue  # word2vec says first how many rows and numbers there are
                width = len(cells) - 1 if width is None else width
                vector = np.array(cells[-width:], dtype=np.float32)
                words.append(" ".join(cells[:-width]))
                rows.append(vector)
                if len(cells) <= width or width < 2:
                    raise ValueError(f"{len(cells) - 1} numbers")
    except (OSError, UnicodeDecodeError) as error:
        raise ComesError(f"{path} cannot be read: {error}.") from None
    except ValueError as error:
        raise ComesError(
            f"{path}: line {number} should be a word and {width} numbers, with blanks between "
            f"them; got {error}."
        ) from None
    if not rows:
        raise ComesError(f"{path} is empty; expected a word and its vector on every line.")
    return words, np.stack(rows)


def _read_npz(path: Path) -> tuple[list[str], Vectors]:
    """Return words and vectors of an .npz file."""
    try:
        with np.load(path, allow_pickle=False) as stored:
            words, vectors = stored["words"], stored["vectors"].astype(np.float32)
    except (OSError, ValueError, KeyError) as error:
        raise ComesError(
            f"{path} should be an .npz file with the arrays 'words' and 'vectors': {error}."
        ) from None
    if vectors.ndim != 2 or words.shape != vectors.shape[:1]:
        raise ComesError(
            f"{path} needs a row of 'vectors' for each of the 'words'; got {vectors.shape} and "
            f"{words.shape}."
        )
    return [str(word) for word in words], vectors


def read_token_vectors(weights: Path, tokenizer: Path) -> StaticVectors:
    """Read vectors of tokens from a .safetensors file, and the tokenizer that belongs to them."""
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        tensors = load_file(weights)
    except (OSError, SafetensorError) as error:
        raise ComesError(f"{weights} cannot be read: {error}.") from None
    matrices = [tensor for tensor in tensors.values() if tensor.ndim == 2]
    if len(matrices) != 1:
        raise ComesError(
            f"{weights} should hold one matrix, a vector for each token; it holds {len(matrices)}."
        )
    return StaticVectors(matrices[0], _TokenSplitter(_load_tokenizer(tokenizer), len(matrices[0])))


@dataclass(frozen=True)
class _TokenSplitter:
    """Split texts with a tokenizer; what it does not know is left out."""

    tokenizer: Any
    n_tokens: int

    def __call__(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the numbers of the tokens."""
        found = self.tokenizer.encode_batch(list(texts), add_special_tokens=False)
        return [[token for token in text.ids if token < self.n_tokens] for text in found]


def _load_tokenizer(path: Path) -> Any:
    try:
        from tokenizers import Tokenizer
    except ImportError:
        raise ComesError(
            "these vectors of tokens need tokenizers; it is not installed. Do pip install "
            "'comes[text]'."
        ) from None
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises nothing more exact
        raise ComesError(f"{path} cannot be read as a tokenizer: {error}.") from None
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer
