"""Vectors of texts by the name of a model, computed once and kept on disk by content."""

import hashlib
import importlib.util
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from comes.errors import ComesError, first_line
from comes.files import cache_folder, data_folder, expanded, grow_features, read_features
from comes.progress import progress_bar

Vectors = npt.NDArray[np.float32]

WORDLLAMA = "wordllama"
AT_ONCE = 256  # texts


@dataclass(frozen=True, eq=False)
class Embedding:
    """What turns texts into vectors.

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
    >>> def embed(texts):
    ...     return np.array([[len(text), 1] for text in texts], dtype=np.float32)
    >>> embed_texts(["red", "sea!"], Embedding("lengths", "1", 2, embed), cache=False).tolist()
    [[3.0, 1.0], [4.0, 1.0]]
    """

    name: str
    checksum: str
    n_features: int
    embed: Callable[[Sequence[str]], Vectors]


def open_embedding(name: str | Path, checksum: str | None = None) -> Embedding:
    """Return what turns texts into vectors, found by its name. Nothing is downloaded.

    Parameters
    ----------
    name : str or Path
        "wordllama", an installed package that carries its vectors; or a model of model2vec or
        sentence-transformers: its folder, in the working folder or in $COMES_DATA, or its name in
        the cache of Hugging Face ("minishlab/potion-base-8M").
    checksum : str, optional
        Raise if the files are others than those that this checksum was of.

    Returns
    -------
    embedding : Embedding

    Examples
    --------
    >>> open_embedding("no/such-model")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    comes.errors.ComesError: the embedding 'no/such-model' is neither 'wordllama', nor ...
    """
    name = str(name)
    opened = _open_wordllama() if name == WORDLLAMA else _open_folder(name, _locate(name))
    if checksum is not None and opened.checksum != checksum:
        raise ComesError(
            f"the embedding {name!r} must be the one that the model was trained with (checksum "
            f"{checksum[:12]}); found another ({opened.checksum[:12]}). Put the same files there, "
            "or fit the model again."
        )
    return opened


def embed_texts(
    texts: Sequence[str], embedding: Embedding | str | Path, *, cache: bool = True
) -> Vectors:
    """Return the vectors of texts, from disk if they are there.

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
    >>> embed_texts([], Embedding("none", "0", 2, np.asarray)).shape
    (0, 2)
    """
    opened = embedding if isinstance(embedding, Embedding) else open_embedding(embedding)
    texts = [str(text) for text in texts]
    compute, shape = partial(_compute_parts, opened, texts), (len(texts), opened.n_features)
    if not cache or not texts:
        return np.concatenate([np.empty((0, opened.n_features), np.float32), *compute(0)])
    whole = hashlib.sha256(opened.checksum.encode())
    for state in _states_of(texts):
        whole.update(state)
    # Shared by all texts that begin alike: a longer table goes on where a shorter one stopped.
    first = hashlib.sha256(json.dumps([opened.checksum, texts[0]]).encode())
    folder = cache_folder() / "features"
    path = folder / f"{whole.hexdigest()[:32]}.npy"
    stored = read_features(path)
    if stored is None:
        growing = folder / f"{first.hexdigest()[:32]}.part"
        stored = grow_features(path, growing, shape, partial(_states_of, texts), compute)
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


def _locate(name: str) -> Path:
    """Return the folder that a name means; raise if there is none."""
    places = [expanded(name)]
    if (data := data_folder()) is not None:
        places.append(data / name)
    found = next((place for place in places if place.exists()), None)
    if found is None and importlib.util.find_spec("huggingface_hub") is not None:
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

        try:
            return Path(snapshot_download(name, local_files_only=True))
        except (LocalEntryNotFoundError, HFValidationError, OSError):
            pass
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


def _open_wordllama() -> Embedding:
    """Return the vectors that the package wordllama carries; its code is not used."""
    spec = importlib.util.find_spec(WORDLLAMA)
    if spec is None or not spec.submodule_search_locations:
        raise ComesError(
            "the embedding 'wordllama' needs a package that carries its vectors; it is not "
            "installed. Do pip install 'comes[text]'."
        )
    home = Path(spec.submodule_search_locations[0])
    files = [*(home / "weights").glob("*.safetensors"), *(home / "tokenizers").glob("*.json")]
    if [file.suffix for file in files] != [".safetensors", ".json"]:
        raise ComesError(
            f"the package wordllama at {home} should carry one file of vectors and one tokenizer; "
            f"it has {len(files)} files. Install wordllama 0.4."
        )

    def load() -> Any:
        from model2vec import StaticModel
        from safetensors.numpy import load_file
        from tokenizers import Tokenizer

        (vectors,) = load_file(files[0]).values()
        tokenizer = Tokenizer.from_file(str(files[1]))
        tokenizer.no_padding()
        tokenizer.no_truncation()
        return StaticModel(vectors.astype(np.float32), tokenizer, config={})

    return _open_model(WORDLLAMA, "model2vec", load, files, max_length=None)


def _open_folder(name: str, folder: Path) -> Embedding:
    """Return the embedding of a folder, by what lies in it."""
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        config = None
    endings = (".json", ".safetensors", ".bin", ".txt", ".model")  # descriptions do not count
    files = sorted(f for f in folder.rglob("*") if f.suffix in endings and f.is_file())
    is_static = isinstance(config, dict) and config.get("model_type") == "model2vec"
    if not is_static and not (folder / "modules.json").is_file():
        raise ComesError(
            f"{folder} should be a model of model2vec (config.json says so) or of "
            "sentence-transformers (modules.json); it is neither. Download the model again."
        )

    def load() -> Any:
        if is_static:
            from model2vec import StaticModel

            return StaticModel.from_pretrained(str(folder))
        from sentence_transformers import SentenceTransformer

        return SentenceTransformer(str(folder), local_files_only=True)

    if is_static:
        return _open_model(name, "model2vec", load, files)
    options = {"batch_size": 64, "show_progress_bar": False}
    return _open_model(name, "sentence-transformers", load, files, **options)


def _open_model(
    name: str, package: str, load: Callable[[], Any], files: Sequence[Path], **options: Any
) -> Embedding:
    """Return the embedding of a model that a package loads, whose errors are of many kinds."""
    try:
        model = load()
    except Exception as error:
        reason = first_line(error).rstrip(".")
        if isinstance(error, ImportError):
            raise ComesError(
                f"the embedding {name!r} needs {package}, which cannot be imported ({reason}). Do "
                "pip install 'comes[text]'."
            ) from None
        raise ComesError(f"the embedding {name!r} cannot be loaded: {reason}.") from None

    def embed(texts: Sequence[str]) -> Vectors:
        vectors = np.asarray(model.encode(list(texts), **options), dtype=np.float32)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        return np.asarray(vectors / np.where(lengths > 0, lengths, 1), dtype=np.float32)

    return Embedding(name, _hash_files(files), embed([""]).shape[1], embed)


def _hash_files(paths: Sequence[Path]) -> str:
    """Return a hash of the contents of files, in this order."""
    found = hashlib.sha256()
    for path in paths:
        with open(path, "rb") as file:
            found.update(hashlib.file_digest(file, "sha256").digest())
    return found.hexdigest()
