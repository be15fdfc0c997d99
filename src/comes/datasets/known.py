"""Data sets by name: the paper's ten, and classical ones that candidates can be made for.

A data set is looked for under ``$COMES_DATA``, then in the cache (`cache_folder`). Only what is in
neither is downloaded, and only from an address whose checksum is known.
"""

import difflib
from pathlib import Path
from typing import Any

from comes.datasets.catalogue import KNOWN
from comes.datasets.dataset import Dataset
from comes.datasets.download import cache_folder, download, unpack_tar
from comes.datasets.needed import KnownDataset, Needed, data_folder
from comes.errors import ComesError

__all__ = ["KNOWN", "find_known", "load_dataset"]


def load_dataset(name: str, split: str = "", **options: Any) -> Dataset:
    """Read a data set by its name, downloading it if need be.

    Parameters
    ----------
    name : str
        One of `KNOWN`, whatever the case of its letters.
    split : str
        An official split, where there is one. By default the whole, where it is one.
    **options
        ``skip_broken=True`` for images; ``difficult="relevant"`` for VOC; ``unannotated="keep"``
        for COCO2014.

    Returns
    -------
    dataset : Dataset
    """
    known = find_known(name)
    if known is None:
        near = difflib.get_close_matches(name, KNOWN, n=1, cutoff=0.5)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise ComesError(f"no data set is called {name!r}.{hint} 'comes datasets' lists them.")
    if split not in known.rows:
        splits = " or ".join(f"'{known.name}:{s}'" if s else f"'{known.name}'" for s in known.rows)
        asked = f"no split {split!r}" if split else "no whole"
        raise ComesError(f"{known.name} has {asked}; {splits} was wanted.")
    unknown = [option for option in options if option not in known.options]
    if unknown:
        raise ComesError(f"{unknown[0]!r} is no option of {known.name}, as it has no such choice.")
    paths = [_locate(needed, known) for needed in known.needs(split)]
    dataset = known.read(paths, split, **options)
    _check_size(dataset, known, split, paths[0], exact=not options)
    return dataset


def find_known(name: str) -> KnownDataset | None:
    """Return the data set of that name, whatever the case of its letters."""
    return next((known for known in KNOWN.values() if known.name.lower() == name.lower()), None)


def _locate(needed: Needed, known: KnownDataset) -> Path:
    """Return where a file lies, after a download if there is no other way."""
    found = needed.find()
    if found is not None:
        return found
    target = cache_folder() / needed.places[-1]
    if not needed.address:
        home = data_folder() or cache_folder()
        raise ComesError(
            f"{known.name} is not at hand, and cannot be downloaded by itself. Put "
            f"{Path(needed.places[-1]).name} at {home / needed.places[-1]}; {known.by_hand}."
        )
    if not needed.is_tar:
        return download(needed.address, needed.checksum, target)
    archive = cache_folder() / needed.address.rpartition("/")[2]
    unpack_tar(download(needed.address, needed.checksum, archive), cache_folder())
    if not target.exists():
        raise ComesError(f"{archive.name} was unpacked, and {needed.places[-1]} was not in it.")
    return target


def _check_size(dataset: Dataset, known: KnownDataset, split: str, path: Path, exact: bool) -> None:
    """Raise if the file is another version of the data set than the one of that name."""
    found = (
        len(dataset) if exact else known.rows[split],
        dataset.X.shape[1] if known.n_features is not None else None,
        len(dataset.label_names),
    )
    wanted = (known.rows[split], known.n_features, known.n_labels)
    if found != wanted:
        shown = [" x ".join(str(size) for size in sizes if size) for sizes in (wanted, found)]
        raise ComesError(
            f"{known.name} has {shown[0]} (rows, features, labels), and {path} has {shown[1]}: "
            "another version of it. Read that file by its path, or put the right one there."
        )
