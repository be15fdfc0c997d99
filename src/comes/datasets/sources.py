"""Named data sets: what is known before they are read, and where their files come from."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from comes.datasets.dataset import Dataset
from comes.datasets.reading import Reading
from comes.files import cache_folder, data_folder


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
        found = (folder / place for folder in folders for place in self.places)
        return next((path for path in found if os.path.exists(path)), None)


@dataclass(frozen=True)
class NamedDataset:
    """What is known about a data set before it is read."""

    name: str
    about: str
    rows: Mapping[str, int | None]  # by split; "" is the whole; None where copies differ
    n_features: int | None  # None for images
    n_labels: int
    sources: Mapping[str, tuple[Source, ...]]  # by split
    read: Callable[[Sequence[Path], str, Reading], Dataset]  # the paths, the split
    fields: tuple[str, ...] = ()  # of a Reading that apply to it
    by_hand: str = ""  # how to get it, if no address with a checksum is known

    def is_at_hand(self, split: str) -> bool:
        """Return whether every source of a split is there."""
        return all(source.find() is not None for source in self.sources[split])

    def can_be_downloaded(self, split: str) -> bool:
        """Return whether there is an address for every source that is not there."""
        return all(source.find() or source.address for source in self.sources[split])
