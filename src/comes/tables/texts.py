"""Vectors of texts by the name of a model, computed once and kept on disk by content."""

import hashlib
import importlib.util
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from comes.errors import ComesError, first_line
from comes.files import cache_folder, data_folder, expanded
from comes.files.features import grow_features, read_features
from comes.progress import progress_bar

Vectors = npt.NDArray[np.float32]

WORDLLAMA = "wordllama"
ENDINGS = (".json", ".safetensors", ".bin", ".txt", ".model")  # descriptions do not count
AT_ONCE = 256  # texts


@dataclass(frozen=True, eq=False)
class Embedding:
    """What turns n texts into an array of shape (n, n_features)."""

    checksum: str  # of the files that decide the vectors
    n_features: int
    embed: Callable[[Sequence[str]], Vectors]


def embed_texts(texts: Sequence[str], embedding: Embedding, *, cache: bool = True) -> Vectors:
    """Return the vectors of texts, each of length 1, or 0 for a text that says nothing.

    In the cache, they lie under a hash of texts and embedding, and are written as they are
    computed: after a kill, the same call goes on.
    """
    shape = len(texts), embedding.n_features

    def compute(start: int) -> Iterator[Vectors]:
        with progress_bar(len(texts), "vectors of texts", start=start) as advance:
            for first in range(start, len(texts), AT_ONCE):
                part = texts[first : first + AT_ONCE]
                yield embedding.embed(part)
                advance(steps=len(part))

    def states() -> Iterator[bytes]:
        return (json.dumps(text).encode() for text in texts)

    if not cache or not texts:
        return np.concatenate([np.empty((0, embedding.n_features), np.float32), *compute(0)])
    whole = hashlib.sha256(embedding.checksum.encode() + b"".join(states()))
    # Shared by all texts that begin alike: a longer table goes on where a shorter one stopped.
    first = hashlib.sha256(json.dumps([embedding.checksum, texts[0]]).encode())
    folder = cache_folder() / "features"
    path = folder / f"{whole.hexdigest()[:32]}.npy"
    stored = read_features(path)
    if stored is None:
        growing = folder / f"{first.hexdigest()[:32]}.part"
        stored = grow_features(path, growing, shape, states, compute)
    return stored


def open_embedding(name: str | Path, checksum: str | None = None) -> Embedding:
    """Return the embedding that has a name, and a checksum if one is given; see `ColumnEncoder`."""
    name = str(name)
    folder = _find_wordllama() if name == WORDLLAMA else _find_folder(name)
    if name == WORDLLAMA:
        files = [*folder.glob("weights/*.safetensors"), *folder.glob("tokenizers/*.json")]
    else:
        files = sorted(f for f in folder.rglob("*") if f.suffix in ENDINGS and f.is_file())
    try:
        encode = _load_wordllama(files) if name == WORDLLAMA else _load_folder(folder)
    except Exception as error:  # packages have errors of many kinds
        hint = " Do pip install 'comes[text]'." if isinstance(error, ImportError) else ""
        reason = first_line(error).rstrip(".")
        raise ComesError(f"the embedding {name!r} cannot be loaded: {reason}.{hint}") from None
    found = hashlib.sha256()
    for path in files:
        with open(path, "rb") as file:
            found.update(hashlib.file_digest(file, "sha256").digest())
    if checksum not in (None, found.hexdigest()):
        raise ComesError(
            f"the embedding {name!r} must be the one that the model was trained with (checksum "
            f"{str(checksum)[:12]}); found another ({found.hexdigest()[:12]}). Put the same files "
            "there, or fit the model again."
        )

    def embed(texts: Sequence[str]) -> Vectors:
        vectors = np.asarray(encode(list(texts)), dtype=np.float32)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        return np.asarray(vectors / np.where(lengths > 0, lengths, 1), dtype=np.float32)

    return Embedding(found.hexdigest(), embed([""]).shape[1], embed)


def _find_wordllama() -> Path:
    spec = importlib.util.find_spec(WORDLLAMA)
    if spec is None or not spec.submodule_search_locations:
        raise ComesError(
            "the embedding 'wordllama' needs a package that carries its vectors; it is not "
            "installed. Do pip install 'comes[text]'."
        )
    return Path(spec.submodule_search_locations[0])


def _load_wordllama(files: Sequence[Path]) -> Callable[[list[str]], Any]:
    """Return what encodes texts with the vectors of the package, whose code is not used."""
    if [file.suffix for file in files] != [".safetensors", ".json"]:
        raise ValueError("it should be one file of vectors and a tokenizer; install wordllama 0.4")
    from model2vec import StaticModel
    from safetensors.numpy import load_file
    from tokenizers import Tokenizer

    (vectors,) = load_file(files[0]).values()
    tokenizer = Tokenizer.from_file(str(files[1]))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    model = StaticModel(vectors.astype(np.float32), tokenizer, config={})
    return partial(model.encode, max_length=None)


def _find_folder(name: str) -> Path:
    """Return the folder of a model, in the working folder, $COMES_DATA or Hugging Face's cache."""
    data = data_folder()
    places = [expanded(name)] if data is None else [expanded(name), data / name]
    found = next((place for place in places if place.exists()), None)
    if found is None and importlib.util.find_spec("huggingface_hub") is not None:
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

        with suppress(LocalEntryNotFoundError, HFValidationError, OSError):
            found = Path(snapshot_download(name, local_files_only=True))
    if found is None:
        raise ComesError(
            f"the embedding {name!r} is neither 'wordllama', nor a folder, nor a model in the "
            f"cache of Hugging Face. Check the path, or download it first ('hf download {name}')."
        )
    if not found.is_dir():
        raise ComesError(
            f"the embedding {name!r} must be the folder of a model; got a file. Files of word "
            "vectors (GloVe, .vec, .npz) are no longer read: take 'wordllama' or a model of "
            "model2vec, and fit again."
        )
    return found


def _load_folder(folder: Path) -> Callable[[list[str]], Any]:
    """Return what encodes texts with a model of model2vec or of sentence-transformers."""
    config = folder / "config.json"
    if config.is_file() and json.loads(config.read_bytes()).get("model_type") == "model2vec":
        from model2vec import StaticModel

        return partial(StaticModel.from_pretrained(str(folder)).encode)
    if not (folder / "modules.json").is_file():
        raise ValueError(
            "it is neither a model of model2vec (config.json says so) nor one of "
            "sentence-transformers (modules.json). Download it again"
        )
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(folder), local_files_only=True)
    return partial(model.encode, batch_size=64, show_progress_bar=False)
