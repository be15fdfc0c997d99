"""Data sets in the files and folders that their authors publish: one reader each.

A reader takes the paths of the files of a split, the name of the split, and how to read them.
"""

import csv
import hashlib
import json
import warnings
import zipfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import sparse

from comes.answers import Answers, State
from comes.datasets.dataset import Dataset
from comes.datasets.joining import join_images
from comes.datasets.matrices import read_arff, read_pml_mat
from comes.datasets.options import ReadOptions
from comes.datasets.tools import coco_dataset, load_json
from comes.errors import ComesError, ComesWarning, listed
from comes.files import cache_folder, replacing_file
from comes.progress import progress_bar

VOC_CLASSES = [
    *("aeroplane", "bicycle", "bird", "boat", "bottle", "bus", "car", "cat", "chair", "cow"),
    *("diningtable", "dog", "horse", "motorbike", "person", "pottedplant", "sheep", "sofa"),
    *("train", "tvmonitor"),
]
RADIUS, BITS = 2, 1024  # of Morgan fingerprints


def _read_csv(path: Path, **options: Any) -> pd.DataFrame:
    try:
        table: pd.DataFrame = pd.read_csv(path, **options)
    except (OSError, EOFError, ValueError) as error:  # EOFError: a .gz that was cut off
        raise ComesError(f"{path} cannot be read: {error}.") from None
    return table


def read_pml(paths: Sequence[Path], split: str, reading: ReadOptions) -> Dataset:
    """Read a .mat file of partial multi-label learning."""
    return read_pml_mat(paths[0], reading)


def read_mulan(paths: Sequence[Path], split: str, reading: ReadOptions) -> Dataset:
    """Read one or two ARFF files and the XML file that names their labels."""
    *tables, xml = paths
    parts = [read_arff(path, ReadOptions(xml=xml)) for path in tables]
    if len(parts) == 1:
        return parts[0]
    X = [part.X for part in parts]
    relevant = np.concatenate([part.known_relevant() for part in parts])
    stacked = sparse.vstack(X) if sparse.issparse(X[0]) else pd.concat(X, ignore_index=True)
    return replace(parts[0], X=stacked, relevant=relevant)


def read_voc(paths: Sequence[Path], split: str, reading: ReadOptions) -> Dataset:
    """Read PASCAL VOC: ``ImageSets/Main/CLASS_SPLIT.txt`` and ``JPEGImages``."""
    lists = [paths[0].with_name(f"{name}_{split}.txt") for name in VOC_CLASSES]
    flags = pd.concat([_read_voc_list(path) for path in lists], axis=1)
    if flags.isna().to_numpy().any():
        path = lists[int(flags.isna().any().to_numpy().argmax())]
        raise ComesError(f"{path.name} does not list the same images as the other classes.")
    items = [f"{name}.jpg" for name in flags.index]
    return _join_voc(flags.to_numpy(), items, paths[0].parents[2] / "JPEGImages", reading)


def _read_voc_list(path: Path) -> "pd.Series[Any]":
    """Return the flag of every image in the list of a class."""
    table = _read_csv(path, sep=r"\s+", header=None, names=["image", "flag"], dtype=str)
    flags = pd.to_numeric(table.set_index("image")["flag"], errors="coerce")
    wrong = ~flags.isin((-1, 0, 1))
    if wrong.any() or flags.index.has_duplicates or flags.empty:
        where = f" at line {int(wrong.to_numpy().argmax()) + 1}" if wrong.any() else ""
        raise ComesError(f"{path}: expected lines such as '000005 -1', each image once{where}.")
    return flags


def read_small_voc(paths: Sequence[Path], split: str, reading: ReadOptions) -> Dataset:
    """Read a copy of VOC that is one table of the flags and a .zip of images."""
    labels, archive = paths
    table = _read_csv(labels)
    missing = [name for name in ("image", "split", *VOC_CLASSES) if name not in table.columns]
    if missing:
        raise ComesError(f"{labels} has no column {missing[0]!r}; it should be VOC's flags.")
    table = table[table["split"] == split]
    if not table[VOC_CLASSES].isin((-1, 0, 1)).to_numpy().all():
        raise ComesError(f"the flags in {labels} should be 1, 0 and -1, and some are not.")
    return _join_voc(table[VOC_CLASSES].to_numpy(), table["image"].tolist(), archive, reading)


def _join_voc(
    flags: npt.NDArray[Any], items: list[str], images: Path, reading: ReadOptions
) -> Dataset:
    """Return the data set of VOC's flags: 1 is there, -1 is not, 0 is difficult to see."""
    relevant = np.asarray(flags >= 0 if reading.difficult == "relevant" else flags == 1)
    dataset = Dataset(None, VOC_CLASSES, relevant=relevant, items=items)
    return join_images(dataset, images, reading.skip_broken)


def read_cub(paths: Sequence[Path], split: str, reading: ReadOptions) -> Dataset:
    """Read ``CUB_200_2011``; an attribute is relevant where it is present, however certainly."""
    folder = paths[0].parent
    names = _read_numbered(folder / "images.txt")
    places = (folder / "attributes", folder, folder.parent)  # the archive has it beside the folder
    lists = [place / "attributes.txt" for place in places if (place / "attributes.txt").is_file()]
    if not lists:
        raise ComesError(f"attributes.txt is neither in {folder} nor beside it; put it there.")
    attributes = _read_numbered(lists[0])
    relevant = _read_cub_attributes(
        folder / "attributes" / "image_attribute_labels.txt", len(names), len(attributes)
    )
    dataset = Dataset(None, attributes, relevant=relevant, items=names)
    if split:
        is_training = _read_numbered(folder / "train_test_split.txt")
        if len(is_training) != len(names):
            raise ComesError(
                f"train_test_split.txt has {len(is_training)} lines for {len(names)} images."
            )
        wanted = "1" if split == "train" else "0"
        dataset = dataset.take([flag == wanted for flag in is_training])
    return join_images(dataset, folder / "images", reading.skip_broken)


def _read_numbered(path: Path) -> list[str]:
    """Return the names in lines "1 NAME", which are numbered from 1."""
    try:
        lines = [line.split(maxsplit=1) for line in path.read_text(encoding="utf-8").splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        raise ComesError(f"{path} cannot be read: {error}.") from None
    for number, words in enumerate(lines, start=1):
        if len(words) != 2 or words[0] != str(number):
            raise ComesError(f"{path}: line {number} should be '{number} NAME'; got {words}.")
    return [name.strip() for _, name in lines]


def _read_cub_attributes(path: Path, n: int, q: int) -> npt.NDArray[np.bool_]:
    """Return where an attribute is present; some lines have more columns than the five named."""
    try:
        table = np.loadtxt(path, dtype=np.int64, usecols=(0, 1, 2), ndmin=2)
    except (OSError, ValueError) as error:
        raise ComesError(f"{path} cannot be read: {error}.") from None
    image, attribute, present = table.T
    if len(table) != n * q or not (
        np.isin(present, (0, 1)).all()
        and ((image >= 1) & (image <= n) & (attribute >= 1) & (attribute <= q)).all()
    ):
        raise ComesError(
            f"{path} should have a line 'image attribute 0|1 certainty time' for each of {n} images"
            f" and {q} attributes; it has {len(table)} lines."
        )
    relevant = np.zeros((n, q), dtype=bool)
    relevant[image - 1, attribute - 1] = present == 1
    return relevant


def read_coco(paths: Sequence[Path], split: str, reading: ReadOptions) -> Dataset:
    """Read the annotations of COCO 2014, in their folder or archive, and its images."""
    annotations, images = paths
    if annotations.suffix == ".zip":
        member = f"annotations/instances_{split}2014.json"
        try:
            with zipfile.ZipFile(annotations) as archive:
                content = json.loads(archive.read(member))
        except (OSError, KeyError, ValueError, zipfile.BadZipFile) as error:
            raise ComesError(f"{member} in {annotations} cannot be read: {error}.") from None
    else:
        content = load_json(annotations)
    dataset = coco_dataset(content, annotations, reading)
    return join_images(dataset, images, reading.skip_broken)


def read_go_emotions(paths: Sequence[Path], split: str, reading: ReadOptions) -> Dataset:
    """Read GoEmotions: lines ``text<tab>4,27<tab>id``, and ``labels.txt`` with names of labels."""
    *tables, names = paths
    try:
        label_names = names.read_text(encoding="utf-8").split()
    except (OSError, UnicodeDecodeError) as error:
        raise ComesError(f"{names} cannot be read: {error}.") from None
    columns = ["text", "labels", "id"]
    plain: dict[str, Any] = {"dtype": str, "keep_default_na": False, "quoting": csv.QUOTE_NONE}
    parts = [_read_csv(path, sep="\t", header=None, names=columns, **plain) for path in tables]
    relevant = [np.zeros((len(part), len(label_names)), dtype=bool) for part in parts]
    for path, part, marked in zip(tables, parts, relevant, strict=True):
        for row, cell in enumerate(part["labels"]):
            numbers = [int(n) if n.strip().isdecimal() else -1 for n in cell.split(",")]
            if min(numbers) < 0 or max(numbers) >= len(label_names):
                raise ComesError(
                    f"{path}: line {row + 1} should be a text, numbers of labels below "
                    f"{len(label_names)} such as '4,27', and an id, with tabs between them; got "
                    f"{cell!r} for the numbers."
                )
            marked[row, numbers] = True
    table = pd.concat(parts, ignore_index=True)
    items = table["id"].tolist()
    return Dataset(table[["text"]], label_names, relevant=np.concatenate(relevant), items=items)


def read_tox21(paths: Sequence[Path], split: str, reading: ReadOptions) -> Dataset:
    """Read a table of molecules and assays, with Morgan fingerprints as features.

    A column ``smiles`` has the molecules, ``mol_id`` their names; every other column is an assay: 1
    active (yes), 0 inactive (no), nothing where it was not run (not asked). Molecules that rdkit
    cannot read are left out, with a warning.
    """
    path = paths[0]
    table = _read_csv(path, dtype={"smiles": str, "mol_id": str})
    if "smiles" not in table.columns:
        raise ComesError(
            f"{path} should have a column 'smiles' with the molecules, and one for each assay; "
            f"got {listed([str(name) for name in table.columns])}."
        )
    results = table.drop(columns=["smiles", "mol_id"], errors="ignore")
    values = results.apply(pd.to_numeric, errors="coerce").to_numpy(dtype=float)
    wrong = ~np.isin(values, (0, 1)) & results.notna().to_numpy()
    if wrong.any():
        row, column = np.argwhere(wrong)[0]
        raise ComesError(
            f"{path}: assay {results.columns[column]!r} should be 1 (active), 0 (inactive) or empty"
            f" (not tested); got {results.iat[row, column]!r} at row {row}."
        )
    codes = np.where(values == 1, State.YES, np.where(values == 0, State.NO, State.NOT_ASKED))
    X, kept = None, np.ones(len(table), dtype=bool)
    if not reading.has_labels_alone:
        X, kept = morgan_fingerprints(table["smiles"].fillna("").tolist())
    if not kept.all():
        unread = table.loc[~kept, "smiles"].astype(str).tolist()
        warnings.warn(
            f"{len(unread)} of {len(table)} molecules cannot be read and are left out: "
            f"{listed(unread, 3)}.",
            ComesWarning,
            stacklevel=2,
        )
    assays = [str(name) for name in results.columns]
    answers = Answers.from_codes(codes[kept], label_names=assays)
    items = None
    if "mol_id" in table.columns:
        names = table["mol_id"][kept]
        items = names.tolist() if names.notna().all() and names.is_unique else None
    return Dataset(X, assays, answers=answers, items=items)


def morgan_fingerprints(smiles: Sequence[str]) -> tuple[Any, npt.NDArray[np.bool_]]:
    """Return a CSR matrix of 1024 bits for each readable molecule, and which are readable.

    They are computed once, and kept in the cache by the hash of the molecules.
    """
    recipe = json.dumps(["morgan", RADIUS, BITS, list(smiles)])
    kept = cache_folder() / "features" / f"{hashlib.sha256(recipe.encode()).hexdigest()[:32]}.npz"
    try:
        with kept.open("rb") as file, np.load(file) as stored:
            packed, readable = stored["bits"], stored["readable"]
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        packed, readable = _compute_fingerprints(smiles)
        kept.parent.mkdir(parents=True, exist_ok=True)
        with replacing_file(kept) as temporary, temporary.open("wb") as target:
            np.savez_compressed(target, bits=packed, readable=readable)
    bits = np.unpackbits(packed[readable], axis=1, count=BITS)
    return sparse.csr_matrix(bits, dtype=np.float32), readable


def _compute_fingerprints(
    smiles: Sequence[str],
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.bool_]]:
    """Return the bits of each molecule, packed, and which molecules can be read."""
    try:
        from rdkit import Chem, rdBase
        from rdkit.Chem.rdFingerprintGenerator import GetMorganGenerator
    except ImportError:
        raise ComesError(
            "fingerprints of molecules need rdkit; it is not installed. Do pip install "
            "'comes[chem]', or name a file of features (--features)."
        ) from None
    generator = GetMorganGenerator(radius=RADIUS, fpSize=BITS)
    packed = np.zeros((len(smiles), BITS // 8), dtype=np.uint8)
    readable = np.zeros(len(smiles), dtype=bool)
    with rdBase.BlockLogs(), progress_bar(len(smiles), "fingerprints") as advance:
        for row, text in enumerate(smiles):
            molecule = Chem.MolFromSmiles(text) if text else None
            if molecule is not None:
                packed[row] = np.packbits(generator.GetFingerprintAsNumPy(molecule))
                readable[row] = True
            advance()
    if not readable.any():
        raise ComesError(
            f"none of {len(smiles)} molecules can be read as SMILES (first: {smiles[0]!r})."
        )
    return packed, readable


READERS = {  # by the name that catalogue.toml gives them
    "coco": read_coco,
    "cub": read_cub,
    "go_emotions": read_go_emotions,
    "mulan": read_mulan,
    "pml": read_pml,
    "small_voc": read_small_voc,
    "tox21": read_tox21,
    "voc": read_voc,
}
