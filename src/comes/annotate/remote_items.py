"""Items that are not files of this machine: at an address, or in a data set of Hugging Face.

They are copied once, when a project is made. What an interrupted copy left is used again.
"""

import os
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any

import pandas as pd

from comes.datasets.images import PICTURE_ENDINGS
from comes.errors import ComesError, first_line, listed
from comes.progress import progress_bar

THREADS = 8
HUB = "hf:"
SAVED = "dataset_dict.json", "dataset_info.json"  # in the folder of a saved data set


def is_remote(place: str | Path) -> bool:
    """Return whether a place is an address, such as s3://bucket/photos."""
    return isinstance(place, str) and re.match(r"[a-z][a-z0-9+.-]+://", place) is not None


def is_hub_dataset(place: str | Path) -> bool:
    """Return whether a place is a data set of Hugging Face: by name, or saved in a folder."""
    is_saved = any((Path(place) / name).is_file() for name in SAVED)
    return str(place).startswith(HUB) or is_saved


def fetch_items(address: str, copies: Path) -> Path:
    """Copy a file, or the pictures under an address, to a folder; return where they are."""
    try:
        from fsspec.core import url_to_fs
    except ImportError:
        raise ComesError(
            f"{address} needs fsspec, which is not installed: pip install 'comes[remote]'."
        ) from None
    with _explaining(address):
        system, path = url_to_fs(address)
        if system.isfile(path):
            target = copies / PurePosixPath(path).name
            _copy(system, path, target)
            return target
        found = system.find(path, detail=True)
    pictures = {
        name: entry["size"]
        for name, entry in found.items()
        if name.lower().endswith(PICTURE_ENDINGS)
    }
    if not pictures:
        raise ComesError(
            f"{address} has no pictures; expected files that end in {', '.join(PICTURE_ENDINGS)}, "
            "or the address of a table."
        )
    root = path.rstrip("/") + "/"
    targets = {name: _place_inside(copies, name.removeprefix(root)) for name in pictures}
    bar = progress_bar(len(pictures), "copying pictures")
    with _explaining(address), ThreadPoolExecutor(THREADS) as pool, bar as advance:
        jobs = [
            pool.submit(_copy, system, name, target, pictures[name])
            for name, target in targets.items()
        ]
        for job in jobs:
            job.result()
            advance()
    return copies


def export_hub_dataset(place: str | Path, text_column: str | None, copies: Path) -> Path:
    """Write a data set of Hugging Face as a table of texts or a folder of pictures."""
    try:
        import datasets
    except ImportError:
        raise ComesError(
            f"{place} needs datasets, which is not installed: pip install 'comes[hub]'."
        ) from None
    data = _load(datasets, str(place))
    pictures = [name for name, kind in data.features.items() if isinstance(kind, datasets.Image)]
    if text_column is None and pictures:
        return _write_pictures(data.cast_column(pictures[0], datasets.Image(decode=False)), copies)
    column = text_column or "text"
    if column not in data.column_names:
        raise ComesError(
            f"{place} has neither pictures nor a column {column!r}; it has "
            f"{listed(data.column_names)}. Name the column of the texts (--text-column)."
        )
    copies.mkdir(mode=0o700, parents=True, exist_ok=True)
    names = [str(k) for k in range(1, len(data) + 1)]
    texts = [str(text) for text in data[column]]
    target = copies / "items.parquet"
    pd.DataFrame({"item": names, column: texts}).to_parquet(target)
    return target


def _load(datasets: Any, place: str) -> Any:
    """Return one split of a data set: the named one, else train, else the first."""
    name, _, split = place.removeprefix(HUB).partition("#")
    with _explaining(place):
        if place.startswith(HUB):
            data = datasets.load_dataset(name)
        else:
            data = datasets.load_from_disk(place)
    if not isinstance(data, dict):
        return data
    if split and split not in data:
        raise ComesError(f"{name} has no split {split!r}; it has {listed(list(data))}.")
    return data[split or ("train" if "train" in data else next(iter(data)))]


def _write_pictures(data: Any, copies: Path) -> Path:
    """Write the pictures of a data set; one that is there already is not written again."""
    [column] = [name for name, kind in data.features.items() if type(kind).__name__ == "Image"][:1]
    copies.mkdir(mode=0o700, parents=True, exist_ok=True)
    with progress_bar(len(data), "copying pictures") as advance:
        for number, row in enumerate(data, 1):
            stored = row[column]
            content = stored["bytes"] or Path(stored["path"]).read_bytes()
            ending = PurePosixPath(stored["path"] or "").suffix.lower() or _find_ending(content)
            target = copies / f"{number:07d}{ending}"
            if not target.exists() or target.stat().st_size != len(content):
                temporary = target.with_name(f".{target.name}")
                temporary.write_bytes(content)
                os.replace(temporary, target)
            advance()
    return copies


def _find_ending(content: bytes) -> str:
    """Return how the name of a picture should end, by its first bytes."""
    starts = {b"\x89PNG": ".png", b"\xff\xd8": ".jpg", b"GIF8": ".gif", b"RIFF": ".webp"}
    return next((end for start, end in starts.items() if content.startswith(start)), ".jpg")


def _copy(system: Any, name: str, target: Path, size: int | None = None) -> None:
    """Copy a file, whole or not at all, unless a copy of its size is there."""
    if size is not None and target.is_file() and target.stat().st_size == size:
        return
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}")
    system.get_file(name, str(temporary))
    os.replace(temporary, target)


def _place_inside(folder: Path, name: str) -> Path:
    """Return where a file goes; raise if its name leads out of the folder."""
    parts = PurePosixPath(name.replace("\\", "/")).parts
    if not parts or ".." in parts or parts[0] == "/":
        raise ComesError(f"{name!r} is not a name inside its folder. Rename it.")
    return folder.joinpath(*parts)


@contextmanager
def _explaining(place: str) -> Iterator[None]:
    """Say in one sentence why a place cannot be read; what systems raise has no common class."""
    try:
        yield
    except ComesError:
        raise
    except ImportError as error:
        raise ComesError(
            f"{place} needs a package that is not installed ({first_line(error)}): pip install "
            "'comes[remote]'."
        ) from None
    except Exception as error:
        raise ComesError(
            f"{place} cannot be read: {first_line(error)}. Correct the address, or copy the items "
            "to this machine."
        ) from None
