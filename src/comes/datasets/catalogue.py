"""Data sets that are read by name, from the files that their authors publish; and made scenes.

Files are looked for under ``$COMES_DATA``, then in the cache (`cache_folder`). Only what is in
neither is downloaded, and only from an address whose checksum is known.
"""

import csv
import json
import os
import tomllib
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import sparse

from comes.answers import Answers
from comes.datasets.dataset import Dataset, join_images, marks_of_sets
from comes.datasets.labels import NO, YES, read_states
from comes.datasets.matrices import read_arff, read_mat
from comes.datasets.options import ReadOptions
from comes.datasets.tools import coco_dataset
from comes.errors import ComesError, listed, reading_as, warn_user
from comes.files import cache_folder, data_folder, download, unpack_tar
from comes.progress import progress_bar

VOC_CLASSES = [
    *("aeroplane", "bicycle", "bird", "boat", "bottle", "bus", "car", "cat", "chair", "cow"),
    *("diningtable", "dog", "horse", "motorbike", "person", "pottedplant", "sheep", "sofa"),
    *("train", "tvmonitor"),
]
RADIUS, BITS = 2, 1024  # of Morgan fingerprints
CELL, GRID = 8, (2, 2)  # scenes: pixels along a digit, and the cells of a canvas
N_TRAINING_DIGITS = 1200  # of 1797; the others make the test scenes


@dataclass(frozen=True)
class Source:
    """A file or folder of a data set: where it may lie, and where it can be downloaded."""

    places: Sequence[str]  # a download lands in the last
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
    n_labels: int
    sources: Mapping[str, Sequence[Source]]  # by split
    reader: str  # a key of READERS
    n_features: int | None = None  # None for images
    fields: Sequence[str] = ()  # of a ReadOptions that apply to it
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
    text = (files("comes.datasets") / "catalogue.toml").read_text(encoding="utf-8")
    for name, facts in tomllib.loads(text).items():
        rows = {split: n or None for split, n in facts.pop("rows").items()}
        sources: dict[str, list[Source]] = {split: [] for split in rows}
        for file in facts.pop("files"):
            places = file.pop("places")
            for split in file.pop("splits", rows):
                sources[split].append(Source([p.format(split=split) for p in places], **file))
        known[name] = NamedDataset(name, rows=rows, sources=sources, **facts)
    return known


# The data sets that have a name, by that name; `open_dataset` reads them.
KNOWN: Mapping[str, NamedDataset] = _load_facts()


def find_named(name: str) -> NamedDataset | None:
    """Return the data set of that name, whatever the case of its letters."""
    return next((named for named in KNOWN.values() if named.name.lower() == name.lower()), None)


def read_named(named: NamedDataset, split: str, options: ReadOptions) -> Dataset:
    """Read a split of a named data set, downloading it if need be."""
    if split not in named.rows:
        splits = " or ".join(f"'{named.name}:{s}'" if s else f"'{named.name}'" for s in named.rows)
        missing = f"no split {split!r}" if split else "splits only"
        raise ComesError(f"{named.name} has {missing}; expected {splits}.")
    paths = [_locate(source, named) for source in named.sources[split]]
    dataset = READERS[named.reader](paths, split, options)
    wanted = n, d, q = (named.rows[split], named.n_features, named.n_labels)
    if n is not None and not any(field in named.fields for field in options.given):
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
    path = source.find()
    if path is not None:
        return path
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


def read_pml(paths: Sequence[Path], split: str, options: ReadOptions) -> Dataset:
    """Read a .mat file of partial multi-label learning."""
    return read_mat(paths[0], options)


def read_mulan(paths: Sequence[Path], split: str, options: ReadOptions) -> Dataset:
    """Read one or two ARFF files and the XML file that names their labels."""
    *tables, xml = paths
    parts = [read_arff(path, ReadOptions(xml=xml)) for path in tables]
    if len(parts) == 1:
        return parts[0]
    X = pd.concat([part.X for part in parts], ignore_index=True)
    return replace(parts[0], X=X, relevant=np.concatenate([part.relevant for part in parts]))


def read_voc(paths: Sequence[Path], split: str, options: ReadOptions) -> Dataset:
    """Read PASCAL VOC: ``ImageSets/Main/CLASS_SPLIT.txt`` and ``JPEGImages``."""
    lists = [paths[0].with_name(f"{name}_{split}.txt") for name in VOC_CLASSES]
    form: dict[str, Any] = {"names": ["image", "flag"], "dtype": {"image": str, "flag": float}}
    tables: list[pd.DataFrame] = []
    for path in lists:
        with reading_as("lines such as '000005 -1' about the images of all classes", path):
            tables.append(pd.read_csv(path, sep=r"\s+", header=None, **form))
            if not tables[-1]["image"].equals(tables[0]["image"]):
                raise ValueError("it has others")
    flags = np.stack([table["flag"] for table in tables], axis=1)
    folder = paths[0].parents[2] / "JPEGImages"
    return _join_voc(flags, [f"{image}.jpg" for image in tables[0]["image"]], folder, options)


def read_small_voc(paths: Sequence[Path], split: str, options: ReadOptions) -> Dataset:
    """Read a copy of VOC that is one table of the flags and a .zip of images."""
    labels, archive = paths
    with reading_as("a table of VOC's flags", labels):
        table = pd.read_csv(labels)
        table = table[table["split"] == split]
        flags, items = table[VOC_CLASSES].to_numpy(), table["image"].tolist()
    return _join_voc(flags, items, archive, options)


def _join_voc(
    flags: npt.NDArray[Any], items: list[str], images: Path, options: ReadOptions
) -> Dataset:
    """Return the data set of VOC's flags: 1 is there, -1 is not, 0 is difficult to see."""
    wrong = ~np.isin(flags, (-1, 0, 1))
    if wrong.any():
        row, label = np.argwhere(wrong)[0]
        raise ComesError(
            f"VOC's flags should be 1, 0 and -1; got {flags[row, label]} for {items[row]} and "
            f"{VOC_CLASSES[label]}, of the images in {images}."
        )
    relevant = np.asarray(flags >= 0 if options.difficult == "relevant" else flags == 1)
    dataset = Dataset(None, VOC_CLASSES, relevant=relevant, items=items)
    return join_images(dataset, images, options.skip_broken)


def read_cub(paths: Sequence[Path], split: str, options: ReadOptions) -> Dataset:
    """Read ``CUB_200_2011``; an attribute is relevant where it is present, however certainly."""
    folder = paths[0].parent
    names = _read_numbered(folder / "images.txt")
    places = (folder / "attributes", folder, folder.parent)  # the archive has it beside the folder
    lists = [place / "attributes.txt" for place in places]
    attributes = _read_numbered(next((path for path in lists if path.is_file()), lists[-1]))
    path, n, q = folder / "attributes" / "image_attribute_labels.txt", len(names), len(attributes)
    form = f"lines 'image attribute 0|1 certainty time' for each of {n} images and {q} attributes"
    with reading_as(form, path):  # some lines have more columns than the five named
        table = np.loadtxt(path, dtype=np.int64, usecols=(0, 1, 2), ndmin=2)
        image, attribute, present = table.T
        is_inside = (image >= 1) & (image <= n) & (attribute >= 1) & (attribute <= q)
        if len(table) != n * q or not (is_inside & np.isin(present, (0, 1))).all():
            raise ValueError(f"it has {len(table)} lines, or other numbers")
    relevant = np.zeros((n, q), dtype=bool)
    relevant[image - 1, attribute - 1] = present == 1
    dataset = Dataset(None, attributes, relevant=relevant, items=names)
    if split:
        is_training = np.array(_read_numbered(folder / "train_test_split.txt")) == "1"
        if len(is_training) != n:
            raise ComesError(f"train_test_split.txt has {len(is_training)} lines for {n} images.")
        dataset = dataset.take(is_training == (split == "train"))
    return join_images(dataset, folder / "images", options.skip_broken)


def _read_numbered(path: Path) -> list[str]:
    """Return the names in lines "1 NAME", which are numbered from 1."""
    with reading_as("lines 'NUMBER NAME'", path):
        lines = [line.split(maxsplit=1) for line in path.read_text(encoding="utf-8").splitlines()]
        for number, words in enumerate(lines, start=1):
            if len(words) != 2 or words[0] != str(number):
                raise ValueError(f"line {number} should be '{number} NAME'; got {words}")
    return [name.strip() for _, name in lines]


def read_coco(paths: Sequence[Path], split: str, options: ReadOptions) -> Dataset:
    """Read the annotations of COCO 2014, in their folder or archive, and its images."""
    annotations, images = paths
    with reading_as("annotations of COCO", annotations):
        if annotations.suffix == ".zip":
            with zipfile.ZipFile(annotations) as archive:
                content = json.loads(archive.read(f"annotations/instances_{split}2014.json"))
        else:
            content = json.loads(annotations.read_bytes())
    dataset = coco_dataset(content, annotations, options)
    return join_images(dataset, images, options.skip_broken)


def read_go_emotions(paths: Sequence[Path], split: str, options: ReadOptions) -> Dataset:
    """Read GoEmotions: lines ``text<tab>4,27<tab>id``, and ``labels.txt`` with names of labels."""
    *tables, names = paths
    form: dict[str, Any] = {"sep": "\t", "header": None, "names": ["text", "labels", "id"]}
    form |= {"dtype": str, "keep_default_na": False, "quoting": csv.QUOTE_NONE}
    with reading_as("GoEmotions, lines of a text, numbers such as '4,27' and an id", names.parent):
        label_names = names.read_text(encoding="utf-8").split()
        table = pd.concat([pd.read_csv(path, **form) for path in tables], ignore_index=True)
        numbers = [cell.split(",") for cell in table["labels"]]
        relevant, _ = marks_of_sets(numbers, [str(k) for k in range(len(label_names))])
    return Dataset(table[["text"]], label_names, relevant=relevant, items=table["id"].tolist())


def read_tox21(paths: Sequence[Path], split: str, options: ReadOptions) -> Dataset:
    """Read a table of molecules and assays, with Morgan fingerprints as features.

    A column ``smiles`` has the molecules, ``mol_id`` their names; every other column is an assay: 1
    active (yes), 0 inactive (no), nothing where it was not run (not asked). Molecules that rdkit
    cannot read are left out, with a warning.
    """
    with reading_as("a table of smiles and assays, 1, 0 or empty", paths[0]):
        table = pd.read_csv(paths[0], dtype={"smiles": str, "mol_id": str})
        smiles = table["smiles"].fillna("").tolist()
        results = table.drop(columns=["smiles", "mol_id"], errors="ignore")
        codes = read_states(results, {"1": YES, "0": NO})
    X, is_read = None, np.ones(len(table), dtype=bool)
    if not options.has_labels_alone:
        X, is_read = morgan_fingerprints(smiles)
    if not is_read.all():
        unread = table.loc[~is_read, "smiles"].astype(str).tolist()
        warn_user(
            f"{len(unread)} of {len(table)} molecules cannot be read and are left out: "
            f"{listed(unread, 3)}."
        )
    names = table.get("mol_id", pd.Series(index=table.index, dtype=str))
    items = names.tolist() if names.notna().all() and names.is_unique else None
    assays = [str(name) for name in results.columns]
    dataset = Dataset(None, assays, answers=Answers.from_codes(codes), items=items).take(is_read)
    return replace(dataset, X=X)


def morgan_fingerprints(smiles: Sequence[str]) -> tuple[Any, npt.NDArray[np.bool_]]:
    """Return a CSR matrix of 1024 bits for each readable molecule, and which are readable."""
    try:
        from rdkit import Chem, rdBase
        from rdkit.Chem.rdFingerprintGenerator import GetMorganGenerator
    except ImportError:
        raise ComesError(
            "fingerprints of molecules need rdkit; it is not installed. Do pip install "
            "'comes[chem]', or name a file of features (--features)."
        ) from None
    generator = GetMorganGenerator(radius=RADIUS, fpSize=BITS)
    bits = np.zeros((len(smiles), BITS), dtype=np.float32)
    readable = np.zeros(len(smiles), dtype=bool)
    with rdBase.BlockLogs(), progress_bar(len(smiles), "fingerprints") as advance:
        for row, text in enumerate(smiles):
            molecule = Chem.MolFromSmiles(text) if text else None
            if molecule is not None:
                bits[row], readable[row] = generator.GetFingerprintAsNumPy(molecule), True
            advance()
    return sparse.csr_matrix(bits[readable]), readable


# By the name that catalogue.toml gives them; they take the paths of the files of a split, its name
# and the options.
READERS: Mapping[str, Callable[[Sequence[Path], str, ReadOptions], Dataset]] = {
    "coco": read_coco,
    "cub": read_cub,
    "go_emotions": read_go_emotions,
    "mulan": read_mulan,
    "pml": read_pml,
    "small_voc": read_small_voc,
    "tox21": read_tox21,
    "voc": read_voc,
}


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
