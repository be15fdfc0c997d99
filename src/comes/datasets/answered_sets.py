"""Named data sets of molecules, of reports about pictures, and of texts.

Their authors publish them as csv or tsv files; most hold answers: yes, no, maybe, not asked.
"""

from collections.abc import Sequence
from pathlib import Path

from comes.datasets.chexpert import FINDINGS, read_chexpert
from comes.datasets.dataset import Dataset
from comes.datasets.fingerprints import BITS
from comes.datasets.go_emotions import read_go_emotions
from comes.datasets.molecules import read_molecules
from comes.datasets.reading import Reading
from comes.datasets.sources import NamedDataset, Source
from comes.datasets.verified_images import read_open_images

DEEPCHEM = "https://deepchemdata.s3-us-west-1.amazonaws.com/datasets/"
GO_EMOTIONS = "https://github.com/monologg/GoEmotions-pytorch/tree/master/data/original"


def _read_molecules(paths: Sequence[Path], _: str, reading: Reading) -> Dataset:
    return read_molecules(paths[0], reading)


def _read_chexpert(paths: Sequence[Path], _: str, reading: Reading) -> Dataset:
    return read_chexpert(paths[0], reading)


def _read_open_images(paths: Sequence[Path], _: str, reading: Reading) -> Dataset:
    return read_open_images(paths[0], paths[1], reading)


def _read_go_emotions(paths: Sequence[Path], _: str, reading: Reading) -> Dataset:
    *tables, names = paths
    return read_go_emotions(tables, names)


def _describe_molecules(name: str, q: int, about: str, file: str) -> NamedDataset:
    """Describe a table of MoleculeNet, compressed or not; published copies differ in their rows."""
    unpacked = file.removesuffix(".gz")
    source = Source((unpacked, f"chem/{unpacked}", file, f"chem/{file}"))
    by_hand = f"it is published as {DEEPCHEM}{file}"
    sources = {"": (source,)}
    return NamedDataset(name, about, {"": None}, BITS, q, sources, _read_molecules, (), by_hand)


def _list_chexpert_sources(split: str) -> tuple[Source, ...]:
    """Return the table of a split, in the folder of a release or of that name."""
    folders = ("CheXpert-v1.0", "CheXpert-v1.0-small", "chexpert")
    return (Source(tuple(f"{folder}/{split}.csv" for folder in folders)),)


def _list_open_images_sources(split: str) -> tuple[Source, ...]:
    """Return the verified labels of a split, and the names of the classes."""
    file = "class-descriptions-boxable.csv"
    return (
        Source((f"openimages/{split}-annotations-human-imagelabels-boxable.csv",)),
        Source((f"openimages/oidv7-{file}", f"openimages/{file}")),
    )


_EMOTIONS = {
    split: Source((f"goemotions/{split}.tsv", f"text/goemotions/{split}.tsv"))
    for split in ("train", "dev", "test")
}
_EMOTION_NAMES = Source(("goemotions/labels.txt", "text/goemotions/labels.txt"))

ANSWERED = (
    _describe_molecules("Tox21", 12, "molecules, 12 assays, yes and no", "tox21.csv.gz"),
    _describe_molecules("ToxCast", 617, "molecules, 617 assays, yes and no", "toxcast_data.csv.gz"),
    _describe_molecules("MUV", 17, "molecules, 17 assays, yes and no", "muv.csv.gz"),
    NamedDataset(
        "CheXpert",
        "radiographs, findings of reports",
        {"train": 223414, "valid": 234},
        None,
        len(FINDINGS),
        {split: _list_chexpert_sources(split) for split in ("train", "valid")},
        _read_chexpert,
        ("images", "skip_broken"),
        "Stanford gives it to those who ask: https://stanfordmlgroup.github.io/competitions/chexpert",
    ),
    NamedDataset(
        "OpenImages",
        "photos, labels verified by people",
        dict.fromkeys(("train", "validation", "test")),
        None,
        601,
        {split: _list_open_images_sources(split) for split in ("train", "validation", "test")},
        _read_open_images,
        ("images", "skip_broken"),
        "it is published at https://storage.googleapis.com/openimages/web/download_v7.html",
    ),
    NamedDataset(
        "GoEmotions",
        "comments, true labels",
        {"": 54263, "train": 43410, "dev": 5426, "test": 5427},
        1,
        28,
        {
            "": (*_EMOTIONS.values(), _EMOTION_NAMES),
            **{split: (source, _EMOTION_NAMES) for split, source in _EMOTIONS.items()},
        },
        _read_go_emotions,
        ("text", "category"),  # what a model takes its column for
        f"it is published at {GO_EMOTIONS}",
    ),
)
