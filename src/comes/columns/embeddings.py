"""Vectors of texts by the name of a model, computed once and kept on disk by content.

A name is that of an installed package that carries its vectors (``wordllama``), a folder or file of
vectors, or a model of sentence-transformers or model2vec in the cache of Hugging Face. Nothing is
downloaded.
"""

import hashlib
import importlib.util
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from comes.columns.static_vectors import (
    TEXT_ENDINGS,
    TOKENIZER,
    Vectors,
    normalise,
    read_token_vectors,
    read_word_vectors,
)
from comes.errors import ComesError
from comes.files import GrowingFile, cache_folder, data_folder, expanded, read_features
from comes.progress import progress_bar

WORDLLAMA = "wordllama"
AT_ONCE = 256  # texts
FILE_ENDINGS = (*TEXT_ENDINGS, ".npz", ".safetensors")


@dataclass(frozen=True, eq=False)
class Embedding:
    r"""What turns texts into vectors.

    Parameters
    ----------
    name : str
        As it was given.
    checksum : str
        Of the files that decide the vectors.
    n_features : int
    embed : callable sequence of n str -> float32 array of shape (n, n_features)

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "vectors.txt"
    >>> _ = path.write_text("red 1 0\nsea 0 1\n")
    >>> open_embedding(path).embed(["Red!", "?"]).tolist()
    [[1.0, 0.0], [0.0, 0.0]]
    """

    name: str
    checksum: str
    n_features: int
    embed: Callable[[Sequence[str]], Vectors]


def open_embedding(name: str | Path, checksum: str | None = None) -> Embedding:
    """Return what turns texts into vectors, found by its name.

    Parameters
    ----------
    name : str or Path
        "wordllama"; a folder or a file of vectors, in the working folder or in $COMES_DATA; or the
        name of a model in the cache of Hugging Face ("sentence-transformers/all-MiniLM-L6-v2").
    checksum : str, optional
        Raise if the files are others than those that this checksum was of.

    Returns
    -------
    embedding : Embedding

    Examples
    --------
    >>> open_embedding("no/such-vectors")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    comes.errors.ComesError: the embedding 'no/such-vectors' is neither ...
    """
    name = str(name)
    opened = _open_wordllama(name) if name == WORDLLAMA else _open_path(name, _locate(name))
    if checksum is not None and opened.checksum != checksum:
        raise ComesError(
            f"the embedding {name!r} must be the one that the model was trained with (checksum "
            f"{checksum[:12]}); found another ({opened.checksum[:12]}). Put the same vectors "
            "there, or fit the model again."
        )
    return opened


def embed_texts(
    texts: Sequence[str], embedding: Embedding | str | Path, *, cache: bool = True
) -> Vectors:
    r"""Return the vectors of texts, from disk if they are there.

    Parameters
    ----------
    texts : sequence of n str
    embedding : Embedding, str or Path
        As `open_embedding` takes it.
    cache : bool
        Keep vectors on disk, under a hash of texts and embedding. They are written as they are
        computed: after a kill, the same call goes on.

    Returns
    -------
    vectors : float32 array of shape (n, n_features)
        Each of length 1, or 0 for a text that says nothing.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "vectors.txt"
    >>> _ = path.write_text("red 3 4\nsea 0 1\n")
    >>> embed_texts(["red", "the sea"], path, cache=False)
    array([[0.6, 0.8],
           [0. , 1. ]], dtype=float32)
    """
    opened = embedding if isinstance(embedding, Embedding) else open_embedding(embedding)
    texts = [str(text) for text in texts]
    compute = partial(_compute_parts, opened, texts)
    if not cache or not texts:
        found = np.empty((len(texts), opened.n_features), dtype=np.float32)
        done = 0
        for part in compute(0):
            found[done : (done := done + len(part))] = part
        return found
    path, growing = _cached_files(opened, texts)
    stored = read_features(path)
    if stored is None:
        shape = (len(texts), opened.n_features)
        GrowingFile(path, growing, shape).fill(partial(_states_of, texts), compute)
        stored = read_features(path)
        assert stored is not None
    return stored


def _compute_parts(opened: Embedding, texts: list[str], start: int) -> Iterator[Vectors]:
    """Give vectors part by part, from the text with number ``start``."""
    with progress_bar(len(texts), "vectors of texts", start=start) as advance:
        for first in range(start, len(texts), AT_ONCE):
            part = texts[first : first + AT_ONCE]
            yield opened.embed(part)
            advance(steps=len(part))


def _states_of(texts: list[str]) -> Iterator[bytes]:
    """Give what tells each text from another."""
    return (json.dumps(text).encode() for text in texts)


def _cached_files(opened: Embedding, texts: list[str]) -> tuple[Path, Path]:
    """Return the file that vectors are kept in, and its name while it grows.

    The second belongs to all texts that begin with the same one, so that a longer table goes on
    where a shorter one was interrupted.
    """
    whole = hashlib.sha256(opened.checksum.encode())
    for state in _states_of(texts):
        whole.update(state)
    first = hashlib.sha256(json.dumps([opened.checksum, texts[0]]).encode())
    folder = cache_folder() / "features"
    return folder / f"{whole.hexdigest()[:32]}.npy", folder / f"{first.hexdigest()[:32]}.part"


def _locate(name: str) -> Path:
    """Return the file or folder that a name means; raise if there is none."""
    places = [expanded(name)]
    if (data := data_folder()) is not None:
        places.append(data / name)
    found = next((place for place in places if place.exists()), None) or _find_in_hub(name)
    if found is None:
        raise ComesError(
            f"the embedding {name!r} is neither 'wordllama', nor a folder or file of vectors, nor "
            "a model in the cache of Hugging Face. Check the path, or download the model first "
            f"('hf download {name}')."
        )
    return found


def _find_in_hub(name: str) -> Path | None:
    """Return the folder of a model that was downloaded before, or None."""
    if importlib.util.find_spec("huggingface_hub") is None:
        return None
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    try:
        return Path(snapshot_download(name, local_files_only=True))
    except (LocalEntryNotFoundError, HFValidationError, OSError):
        return None


def _open_wordllama(name: str) -> Embedding:
    """Return the vectors that the package wordllama carries; its code is not used."""
    spec = importlib.util.find_spec(WORDLLAMA)
    if spec is None or not spec.submodule_search_locations:
        raise ComesError(
            "the embedding 'wordllama' needs a package that carries its vectors; it is not "
            "installed. Do pip install 'comes[text]'."
        )
    home = Path(spec.submodule_search_locations[0])
    weights = sorted((home / "weights").glob("*.safetensors"))
    tokenizers = sorted((home / "tokenizers").glob("*.json"))
    if len(weights) != 1 or len(tokenizers) != 1:
        raise ComesError(
            f"the package wordllama at {home} should carry one file of vectors and one tokenizer; "
            f"it has {len(weights)} and {len(tokenizers)}. Install wordllama 0.4."
        )
    vectors = read_token_vectors(weights[0], tokenizers[0])
    checksum = _hash_files([weights[0], tokenizers[0]])
    return Embedding(name, checksum, vectors.n_features, vectors.embed)


def _open_path(name: str, path: Path) -> Embedding:
    """Return the embedding of a file or folder."""
    if path.is_dir():
        return _open_folder(name, path)
    if path.suffix not in FILE_ENDINGS:
        raise ComesError(
            f"{path} should be a folder, or end in {', '.join(FILE_ENDINGS)}; got "
            f"{path.suffix or 'no ending'}."
        )
    if path.suffix == ".safetensors":
        return _open_tokens(name, path, path.with_name(TOKENIZER))
    vectors = read_word_vectors(path)
    return Embedding(name, _hash_files([path]), vectors.n_features, vectors.embed)


def _open_folder(name: str, folder: Path) -> Embedding:
    """Return the embedding of a folder, by what lies in it."""
    if (folder / "modules.json").is_file() and not _is_model2vec(folder):
        return _open_sentence_transformer(name, folder)
    if _is_model2vec(folder):
        return _open_model2vec(name, folder)
    weights = sorted(folder.glob("*.safetensors"))
    if len(weights) == 1:
        return _open_tokens(name, weights[0], folder / TOKENIZER)
    files = sorted(file for file in folder.iterdir() if file.suffix in (*TEXT_ENDINGS, ".npz"))
    if len(files) == 1:
        return _open_path(name, files[0])
    raise ComesError(
        f"{folder} should be a model of sentence-transformers (modules.json) or model2vec, or hold "
        f"one file of vectors ({', '.join(FILE_ENDINGS)}); it has {len(weights) + len(files)}."
    )


def _is_model2vec(folder: Path) -> bool:
    """Return whether a folder was saved by model2vec."""
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(config, dict) and config.get("model_type") == "model2vec"


def _open_tokens(name: str, weights: Path, tokenizer: Path) -> Embedding:
    """Return vectors of tokens."""
    if not tokenizer.is_file():
        raise ComesError(f"{weights} needs the tokenizer that belongs to it, as {tokenizer}.")
    vectors = read_token_vectors(weights, tokenizer)
    checksum = _hash_files([weights, tokenizer])
    return Embedding(name, checksum, vectors.n_features, vectors.embed)


def _open_model2vec(name: str, folder: Path) -> Embedding:
    try:
        from model2vec import StaticModel
    except ImportError as error:
        raise _ask_for("model2vec", name, error) from None
    model = _load(folder, lambda: StaticModel.from_pretrained(str(folder)))

    def embed(texts: Sequence[str]) -> Vectors:
        return normalise(np.asarray(model.encode(list(texts)), dtype=np.float32))

    return Embedding(name, _hash_folder(folder), int(model.dim), embed)


def _open_sentence_transformer(name: str, folder: Path) -> Embedding:
    try:
        from sentence_transformers import SentenceTransformer
    except (ImportError, RuntimeError) as error:  # it imports much that may not fit together
        raise _ask_for("sentence-transformers", name, error) from None
    model = _load(folder, lambda: SentenceTransformer(str(folder), local_files_only=True))

    def embed(texts: Sequence[str]) -> Vectors:
        found = model.encode(list(texts), batch_size=64, show_progress_bar=False)
        return normalise(np.asarray(found, dtype=np.float32))

    return Embedding(name, _hash_folder(folder), embed([""]).shape[1], embed)


def _load(folder: Path, load: Callable[[], Any]) -> Any:
    """Return what a library makes of a folder; its errors are of many kinds."""
    try:
        return load()
    except Exception as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ComesError(f"the model in {folder} cannot be loaded: {reason}") from None


def _ask_for(package: str, name: str, error: Exception) -> ComesError:
    reason = str(error).splitlines()[0].rstrip(".")
    return ComesError(
        f"the embedding {name!r} needs {package}, which cannot be imported ({reason}). Do pip "
        "install 'comes[text]'."
    )


def _hash_folder(folder: Path) -> str:
    """Return a hash of the files of a model; descriptions of it do not count."""
    endings = (".json", ".safetensors", ".bin", ".txt", ".model")
    return _hash_files(sorted(f for f in folder.rglob("*") if f.suffix in endings and f.is_file()))


def _hash_files(paths: Sequence[Path]) -> str:
    """Return a hash of the contents of files, in this order."""
    found = hashlib.sha256()
    for path in paths:
        with open(path, "rb") as file:
            found.update(hashlib.file_digest(file, "sha256").digest())
    return found.hexdigest()
