"""Data sets by name: the paper's ten, and classical ones that candidates can be made for.

A data set is looked for under ``$COMES_DATA``, then in the cache (`cache_folder`). Only what is in
neither is downloaded, and only from an address whose checksum is known.
"""

from pathlib import Path

from comes.datasets.catalogue import KNOWN
from comes.datasets.dataset import Dataset
from comes.datasets.reading import Reading
from comes.datasets.sources import NamedDataset, Source
from comes.errors import ComesError
from comes.files import cache_folder, data_folder, download, unpack_tar


def find_named(name: str) -> NamedDataset | None:
    """Return the data set of that name, whatever the case of its letters."""
    return next((named for named in KNOWN.values() if named.name.lower() == name.lower()), None)


def read_named(named: NamedDataset, split: str, reading: Reading) -> Dataset:
    """Read a split of a named data set, downloading it if need be."""
    if split not in named.rows:
        splits = " or ".join(f"'{named.name}:{s}'" if s else f"'{named.name}'" for s in named.rows)
        missing = f"no split {split!r}" if split else "splits only"
        raise ComesError(f"{named.name} has {missing}; expected {splits}.")
    paths = [_locate_source(source, named) for source in named.sources[split]]
    dataset = named.read(paths, split, reading)
    is_whole = not any(field in named.fields for field in reading.given)
    _check_size(dataset, named, split, paths[0], is_whole)
    return dataset


def _locate_source(source: Source, named: NamedDataset) -> Path:
    """Return where a file lies, downloading it if necessary."""
    found = source.find()
    if found is not None:
        return found
    target = cache_folder() / source.places[-1]
    if not source.address:
        home = data_folder() or cache_folder()
        raise ComesError(
            f"{named.name} is not at hand, and has no address to download it from. Put "
            f"{Path(source.places[-1]).name} at {home / source.places[-1]}; {named.by_hand}."
        )
    if not source.is_tar:
        return download(source.address, source.checksum, target)
    archive = cache_folder() / source.address.rpartition("/")[2]
    unpack_tar(download(source.address, source.checksum, archive), cache_folder())
    if not target.exists():
        raise ComesError(f"{archive.name} was unpacked, and {source.places[-1]} was not in it.")
    return target


def _check_size(
    dataset: Dataset, named: NamedDataset, split: str, path: Path, is_whole: bool
) -> None:
    """Raise if the file is another version of the data set; rows count only if all are kept."""
    is_counted = is_whole and named.rows[split] is not None
    has_features = named.n_features is not None and dataset.X is not None
    found = (
        len(dataset) if is_counted else named.rows[split],
        dataset.X.shape[1] if has_features else named.n_features,
        len(dataset.label_names),
    )
    wanted = (named.rows[split], named.n_features, named.n_labels)
    if found != wanted:
        shown = [" x ".join(str(size) for size in sizes if size) for sizes in (wanted, found)]
        raise ComesError(
            f"{named.name} has {shown[0]} (rows, features, labels), and {path} has {shown[1]}: "
            "another version of it. Read that file by its path, or put the right one there."
        )
