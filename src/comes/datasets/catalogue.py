"""Data sets that are read by name: the paper's ten, classical ones, OpenML's, and made scenes.

Files are looked for under ``$COMES_DATA``, then in the cache (`cache_folder`). Only what is in
neither is downloaded, and only from an address whose checksum is known.
"""

import json
import os
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

import numpy as np

from comes.datasets.dataset import Dataset
from comes.datasets.matrices import read_arff
from comes.datasets.options import ReadOptions
from comes.datasets.set_readers import READERS
from comes.errors import ComesError
from comes.files import cache_folder, data_folder, download, unpack_tar

FACTS = files("comes.datasets") / "catalogue.toml"
OPENML = "https://www.openml.org/api/v1/json/data/"
CELL, GRID = 8, (2, 2)  # scenes: pixels along a digit, and the cells of a canvas
N_TRAINING_DIGITS = 1200  # of 1797; the others make the test scenes


@dataclass(frozen=True)
class Source:
    """A file or folder of a data set: where it may lie, and where it can be downloaded."""

    places: tuple[str, ...]  # a download lands in the last
    address: str = ""
    checksum: str = ""
    is_tar: bool = False  # the address is a tar that holds the place

    def find(self) -> Path | None:
        """Return where it lies, or None."""
        folders = [folder for folder in (data_folder(), cache_folder()) if folder is not None]
        paths = (folder / place for folder in folders for place in self.places)
        return next((path for path in paths if os.path.exists(path)), None)


@dataclass(frozen=True)
class NamedDataset:
    """What is known about a data set before it is read."""

    name: str
    about: str
    rows: Mapping[str, int | None]  # by split; "" is the whole; None where copies differ
    n_features: int | None  # None for images
    n_labels: int
    sources: Mapping[str, tuple[Source, ...]]  # by split
    read: Callable[[Sequence[Path], str, ReadOptions], Dataset]
    fields: tuple[str, ...] = ()  # of a ReadOptions that apply to it
    by_hand: str = ""  # how to get it, if no address with a checksum is known

    def is_at_hand(self, split: str) -> bool:
        """Return whether every source of a split is there."""
        return all(source.find() is not None for source in self.sources[split])

    def can_be_downloaded(self, split: str) -> bool:
        """Return whether there is an address for every source that is not there."""
        return all(source.find() or source.address for source in self.sources[split])


def _load_facts() -> dict[str, NamedDataset]:
    """Return the data sets of catalogue.toml by their names."""
    known = {}
    for name, facts in tomllib.loads(FACTS.read_text(encoding="utf-8")).items():
        sources = {}
        for split in facts["rows"]:
            sources[split] = tuple(
                Source(
                    tuple(place.format(split=split) for place in file["places"]),
                    file.get("address", ""),
                    file.get("checksum", ""),
                    file.get("is_tar", False),
                )
                for file in facts["files"]
                if split in file.get("splits", facts["rows"])
            )
        known[name] = NamedDataset(
            name,
            facts["about"],
            {split: n or None for split, n in facts["rows"].items()},
            facts.get("n_features"),
            facts["n_labels"],
            sources,
            READERS[facts["reader"]],
            tuple(facts.get("fields", ())),
            facts.get("by_hand", ""),
        )
    return known


# The data sets that have a name, by that name; `open_dataset` reads them.
KNOWN: Mapping[str, NamedDataset] = _load_facts()


def find_named(name: str) -> NamedDataset | None:
    """Return the data set of that name, whatever the case of its letters."""
    return next((named for named in KNOWN.values() if named.name.lower() == name.lower()), None)


def read_named(named: NamedDataset, split: str, reading: ReadOptions) -> Dataset:
    """Read a split of a named data set, downloading it if need be."""
    if split not in named.rows:
        splits = " or ".join(f"'{named.name}:{s}'" if s else f"'{named.name}'" for s in named.rows)
        missing = f"no split {split!r}" if split else "splits only"
        raise ComesError(f"{named.name} has {missing}; expected {splits}.")
    paths = [_locate(source, named) for source in named.sources[split]]
    dataset = named.read(paths, split, reading)
    wanted = (named.rows[split], named.n_features, named.n_labels)
    n, d, q = wanted
    if n is not None and not any(field in named.fields for field in reading.given):
        n = len(dataset)  # no row was left out or added on purpose
    if d is not None and dataset.X is not None:
        d = dataset.X.shape[1]
    q = len(dataset.label_names)
    if (n, d, q) != wanted:
        expected, got = (" x ".join(str(k) for k in sizes if k) for sizes in (wanted, (n, d, q)))
        raise ComesError(
            f"{named.name} has {expected} (rows, features, labels), and {paths[0]} has {got}: "
            "another version of it. Read that file by its path, or put the right one there."
        )
    return dataset


def _locate(source: Source, named: NamedDataset) -> Path:
    """Return where a file lies, downloading it if necessary."""
    found = source.find()
    if found is not None:
        return found
    place = source.places[-1]
    target = cache_folder() / place
    if not source.address:
        raise ComesError(
            f"{named.name} is not at hand, and has no address to download it from. Put "
            f"{target.name} at {(data_folder() or cache_folder()) / place}; {named.by_hand}."
        )
    if not source.is_tar:
        return download(source.address, source.checksum, target)
    archive = cache_folder() / source.address.rpartition("/")[2]
    unpack_tar(download(source.address, source.checksum, archive), cache_folder())
    if not target.exists():
        raise ComesError(f"{archive.name} was unpacked, and {place} was not in it.")
    return target


def read_openml(which: str, folder: Path) -> Dataset:
    """Read a data set of OpenML by its number or name, from the folder if it was fetched before.

    OpenML's description names the targets, and its ARFF file is read as any other. (scikit-learn's
    `fetch_openml` fills the targets of sparse files from memory that it never set, seen in 1.9.)
    """
    number = which
    if not which.isdigit():
        if not re.fullmatch(r"[\w.()+-]+", which):
            raise ComesError(
                f"{which!r} cannot be the name of a data set of OpenML; letters, digits and .()+- "
                "were wanted."
            )
        page = f"list/data_name/{which.lower()}/limit/2/status/active/"
        active = _fetch_page(page, folder / "names" / f"{which.lower()}.json")
        number = str(active["data"]["dataset"][0]["did"])
    folder /= number
    about = _fetch_page(number, folder / "description.json")["data_set_description"]
    features = _fetch_page(f"features/{number}", folder / "features.json")["data_features"]
    targets, ignored, ids = (
        [str(feature["name"]) for feature in features["feature"] if feature.get(mark) == "true"]
        for mark in ("is_target", "is_ignore", "is_row_identifier")
    )
    if len(targets) < 2:
        raise ComesError(
            f"OpenML's data set {which!r} has {len(targets)} targets; expected several labels."
        )
    file = download(about["url"], f"md5:{about['md5_checksum']}", folder / "data.arff")
    return read_arff(file, ReadOptions(relevant=targets, ignore=[*ignored, *ids]))


def _fetch_page(page: str, path: Path) -> Any:
    """Return a page of OpenML's interface, from the cache if it is there."""
    try:
        return json.loads(download(OPENML + page, None, path).read_bytes())
    except ComesError as error:
        raise ComesError(f"OpenML has no such data set, or does not answer: {error}") from None
    except ValueError as error:
        path.unlink()
        raise ComesError(f"the answer of OpenML is not JSON: {error}. Try again later.") from None


def make_scenes(split: Literal["train", "test"] = "train", n: int = 5000, seed: int = 0) -> Dataset:
    """Compose scenes of one to four digits.

    Parameters
    ----------
    split : {"train", "test"}
        Which handwritten digits to use.
    n : int
        Number of scenes.
    seed : int

    Returns
    -------
    scenes : Dataset
        X of shape (n, 256), grey values in [0, 1]; ten labels; `relevant`, and no candidates:
        `comes.generation` makes them.

    Examples
    --------
    >>> print(make_scenes("train", n=50))
    50 rows, 256 features, 10 labels, 2.20 relevant per row, 0 rows without a relevant label
    """
    if split not in ("train", "test"):
        raise ComesError(f"split must be train or test; got {split!r}.")
    from sklearn.datasets import load_digits  # takes a second to import

    images, digits = load_digits(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(images))
    pool = order[:N_TRAINING_DIGITS] if split == "train" else order[N_TRAINING_DIGITS:]
    rng = np.random.default_rng([seed, split == "test"])

    rows, columns = GRID
    n_cells = rows * columns
    n_digits = rng.integers(1, n_cells + 1, size=n)
    filled = rng.random((n, n_cells)).argsort(axis=1) < n_digits[:, None]  # (n, cells)
    chosen = rng.choice(pool, size=(n, n_cells))
    cells = np.where(filled[:, :, None], images[chosen] / 16, 0)  # (n, cells, 64)
    canvas = cells.reshape(n, rows, columns, CELL, CELL).swapaxes(2, 3)

    relevant = np.zeros((n, 10), dtype=bool)
    scene, cell = np.nonzero(filled)
    relevant[scene, digits[chosen[scene, cell]]] = True
    X = canvas.reshape(n, n_cells * CELL * CELL).astype(np.float32)
    return Dataset(X, [str(digit) for digit in range(10)], relevant=relevant)
