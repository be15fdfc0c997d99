"""What a named data set needs, and where its files may lie."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from comes.datasets.dataset import Dataset
from comes.datasets.download import cache_folder
from comes.errors import ComesError
from comes.files import expanded


@dataclass(frozen=True)
class Needed:
    """A file or folder of a data set: where it may lie, and where it can be had."""

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
class KnownDataset:
    """What is known of a data set before it is read."""

    name: str
    about: str
    rows: Mapping[str, int]  # by split; "" is the whole
    n_features: int | None  # None for images
    n_labels: int
    needs: Callable[[str], tuple[Needed, ...]]  # for a split
    read: Callable[..., Dataset]  # of the paths, the split and options
    options: tuple[str, ...] = ()
    by_hand: str = ""  # where to get it, if no address with a checksum is known

    def is_at_hand(self, split: str) -> bool:
        """Return whether everything that a split needs is there."""
        return all(needed.find() is not None for needed in self.needs(split))

    def can_be_downloaded(self, split: str) -> bool:
        """Return whether an address is known for all that is not there."""
        return all(needed.find() or needed.address for needed in self.needs(split))


def data_folder() -> Path | None:
    """Return the folder that ``$COMES_DATA`` names, if it does."""
    name = os.environ.get("COMES_DATA")
    if not name:
        return None
    folder = expanded(name)
    if not os.path.isdir(folder):
        raise ComesError(f"COMES_DATA names {folder}, which is no folder. Correct or unset it.")
    return folder
