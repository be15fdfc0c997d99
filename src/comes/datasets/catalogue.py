"""The data sets that have a name: their sizes, their files, and how they are read."""

import json
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import sparse

from comes.datasets.answered_sets import ANSWERED
from comes.datasets.arff import read_arff
from comes.datasets.coco import coco_dataset, load_json
from comes.datasets.cub import read_cub
from comes.datasets.dataset import Dataset
from comes.datasets.joining import join_images
from comes.datasets.pml import read_pml_mat
from comes.datasets.reading import Reading
from comes.datasets.sources import NamedDataset, Source
from comes.datasets.voc import read_voc, read_voc_archive
from comes.errors import ComesError


def _read_pml(paths: Sequence[Path], _: str, reading: Reading) -> Dataset:
    return read_pml_mat(paths[0], reading)


def _read_mulan(paths: Sequence[Path], _: str, reading: Reading) -> Dataset:
    *tables, xml = paths
    parts = [read_arff(path, Reading(xml=xml)) for path in tables]
    if len(parts) == 1:
        return parts[0]
    X = [part.X for part in parts]
    relevant = np.concatenate([part.known_relevant() for part in parts])
    stacked = sparse.vstack(X) if sparse.issparse(X[0]) else pd.concat(X, ignore_index=True)
    return replace(parts[0], X=stacked, relevant=relevant)


def _read_voc(paths: Sequence[Path], split: str, reading: Reading) -> Dataset:
    return read_voc(paths[0].parents[2], split, reading)


def _read_voc_archive(paths: Sequence[Path], split: str, reading: Reading) -> Dataset:
    return read_voc_archive(paths[0], paths[1], split, reading)


def _read_cub(paths: Sequence[Path], split: str, reading: Reading) -> Dataset:
    return read_cub(paths[0].parent, split or None, reading)


def _read_coco(paths: Sequence[Path], split: str, reading: Reading) -> Dataset:
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


YEAST = (
    "https://raw.githubusercontent.com/fangyan1221/partial-multi-label-learning/"
    "6d93795c88c104c5b0cb50bcb6e2f2515c1fbe4f/PML%20real-world%20datasets/"
)
MIRFLICKR5000 = (
    "https://raw.githubusercontent.com/zhenzhenSun-FZU/PMFS-FLC/"
    "bf7cedb8d58bb5306cc0d75e04df0f182f444b3f/data/mirflickr.mat"
)
MULAN = "https://raw.githubusercontent.com/tsoumakas/mulan/master/data/multi-label/"
VOC = "http://host.robots.ox.ac.uk/pascal/VOC/"
CUB = "https://data.caltech.edu/records/65de6-vp158/files/CUB_200_2011.tgz"
COCO = "http://images.cocodataset.org/"
ZHANG = "https://palm.seu.edu.cn/zhangml/files/"


def _describe_pml(
    name: str, sizes: tuple[int, int, int], about: str, address: str = "", checksum: str = ""
) -> NamedDataset:
    """Describe one of the .mat files of partial multi-label learning."""
    n, d, q = sizes
    source = Source((f"{name}.mat", f"pml/{name}.mat"), address, checksum)
    by_hand = f"its authors publish it as {ZHANG}pml_{name}.zip"
    return NamedDataset(name, about, {"": n}, d, q, {"": (source,)}, _read_pml, (), by_hand)


def _describe_mulan(
    name: str,
    sizes: tuple[int, int, int],
    about: str,
    files: Mapping[str, tuple[str, ...]],  # the tables of a split
    checksums: Mapping[str, str],
    rows: Mapping[str, int] | None = None,
) -> NamedDataset:
    """Describe one of Mulan's data sets: tables, and an XML file of the labels."""
    n, d, q = sizes
    place = f"{MULAN}{name.lower()}/"
    found = {
        file: Source((file, f"mulan/{file}"), place + file, f"sha256:{checksum}")
        for file, checksum in checksums.items()
    }
    sources = {
        split: tuple(found[file] for file in (*tables, f"{name}.xml"))
        for split, tables in files.items()
    }
    return NamedDataset(name, about, rows or {"": n}, d, q, sources, _read_mulan)


def _describe_voc(
    year: str,
    about: str,
    rows: Mapping[str, int],
    tars: Mapping[str, tuple[str, str]],  # file and checksum; "trainval" holds the other splits
) -> NamedDataset:
    """Describe the VOC of a year, whose splits are lists in one or two archives."""
    sources = {}
    for split in rows:
        file, checksum = tars.get(split, tars["trainval"])
        place = f"VOCdevkit/VOC{year}/ImageSets/Main/aeroplane_{split}.txt"
        address = f"{VOC}voc{year}/{file}"
        sources[split] = (Source((place,), address, f"md5:{checksum}", is_tar=True),)
    fields = ("difficult", "skip_broken")
    return NamedDataset(f"VOC{year}", about, rows, None, 20, sources, _read_voc, fields)


def _list_coco_sources(split: str, checksum: str) -> tuple[Source, ...]:
    """Return the annotations of COCO 2014, which its splits share, and the images of a split."""
    file = "annotations_trainval2014.zip"
    return (
        Source(
            (f"COCO2014/annotations/instances_{split}2014.json", f"COCO2014/{file}"),
            f"{COCO}annotations/{file}",
            "sha256:031296bbc80c45a1d1f76bf9a90ead27e94e99ec629208449507a4917a3bf009",
        ),
        Source(
            (f"COCO2014/{split}2014", f"COCO2014/{split}2014.zip"),
            f"{COCO}zips/{split}2014.zip",
            f"sha256:{checksum}",
        ),
    )


def _list_small_voc_sources(split: str) -> tuple[Source, ...]:
    """Return the table of the flags, and the images of a split."""
    files = ("voc2012-labels.csv", f"voc2012-160px-{split}.zip")
    return tuple(Source((file, f"images/{file}")) for file in files)


CUB_SOURCE = Source(
    ("CUB_200_2011/images.txt",), CUB, "md5:97eceeb196236b17998738112f37df78", is_tar=True
)
COCO_SOURCES = {
    "train": _list_coco_sources(
        "train", "ede4087e640bddba550e090eae701092534b554b42b05ac33f0300b984b31775"
    ),
    "val": _list_coco_sources(
        "val", "fe9be816052049c34717e077d9e34aa60814a55679f804cd043e3cbee3b9fde0"
    ),
}


def _as_whole(file: str) -> dict[str, tuple[str, ...]]:
    return {"": (file,)}


_ALL = (
    _describe_pml("mirflickr", (10433, 100, 7), "photos, candidates from tags"),
    _describe_pml("music_emotion", (6833, 98, 11), "songs, candidates from listeners"),
    _describe_pml("music_style", (6839, 98, 10), "songs, candidates from listeners"),
    _describe_pml(
        "YeastBP",
        (6139, 6139, 217),
        "proteins, biological processes",
        f"{YEAST}YeastBP.mat",
        "sha256:b70add8402d72038123407fb8f0f05f9c5344a182769143856283f821c8bf97e",
    ),
    _describe_pml(
        "YeastCC",
        (6139, 6139, 50),
        "proteins, cellular components",
        f"{YEAST}YeastCC.mat",
        "sha256:8df70196c615551b39bcd819b3a3d099e2a40e9dfcf2ca5cb13271c3dbad23bf",
    ),
    _describe_pml(
        "YeastMF",
        (6139, 6139, 39),
        "proteins, molecular functions",
        f"{YEAST}YeastMF.mat",
        "sha256:bd42e51ec848d847ef00d27574982c8ebc0f516246c68c6952d3ddf9424f02a7",
    ),
    _describe_voc(
        "2007",
        "photos, true labels",
        {"trainval": 5011, "test": 4952, "train": 2501, "val": 2510},
        {
            "trainval": ("VOCtrainval_06-Nov-2007.tar", "c52e279531787c972589f7e41ab4ae64"),
            "test": ("VOCtest_06-Nov-2007.tar", "b6e924de25625d8de591ea690078ad9f"),
        },
    ),
    _describe_voc(
        "2012",
        "photos, true labels",
        {"train": 5717, "val": 5823, "trainval": 11540},
        {"trainval": ("VOCtrainval_11-May-2012.tar", "6cd6e144f989b92b3379bac3b3de84fd")},
    ),
    NamedDataset(
        "CUB",
        "photos of birds, 312 attributes",
        {"": 11788, "train": 5994, "test": 5794},
        None,
        312,
        dict.fromkeys(("", "train", "test"), (CUB_SOURCE,)),
        _read_cub,
        ("skip_broken",),
    ),
    NamedDataset(
        "COCO2014",
        "photos, true labels",
        {"train": 82081, "val": 40137},
        None,
        80,
        COCO_SOURCES,
        _read_coco,
        ("unannotated", "skip_broken"),
    ),
    _describe_pml(
        "mirflickr5000",
        (5000, 100, 7),
        "5000 rows of mirflickr",
        MIRFLICKR5000,
        "sha256:85fe1ab7d65994fca93d03b12b4375478977e9325bc56857cc8850db88cbde66",
    ),
    NamedDataset(
        "VOC2012-160px",
        "VOC2012 at 160 x 160 pixels",
        {"train": 5717, "val": 5823},
        None,
        20,
        {split: _list_small_voc_sources(split) for split in ("train", "val")},
        _read_voc_archive,
        ("difficult", "skip_broken"),
        "it is a zip of images/NAME.jpg and a table image,split,CLASS... made from VOC2012",
    ),
    _describe_mulan(
        "emotions",
        (593, 72, 6),
        "songs, true labels",
        _as_whole("emotions.arff"),
        {
            "emotions.arff": "6f2f790047073d1293ac0872c0d55f2dc98b6177802fc96c6b66b309dfee1e4b",
            "emotions.xml": "dbce8e6ccbbb2fcbfd9e9edbb230d7ed12692c6e13f59fdbc0161fa9b6cf2dc0",
        },
    ),
    _describe_mulan(
        "scene",
        (2407, 294, 6),
        "photos, true labels",
        {
            "": ("scene-train.arff", "scene-test.arff"),
            "train": ("scene-train.arff",),
            "test": ("scene-test.arff",),
        },
        {
            "scene-train.arff": "b53ba93bdf412de922e3960389bcee24744fa3e872ce610511fc1d750888b64d",
            "scene-test.arff": "ea38d20296b3ff7e220f477a3b802a9bcb2d768881fe6ee163efbc97ea527a42",
            "scene.xml": "55d8b247b949ad5c52e5a73d8c6775ec6e5469ce9682465b45b333b68ee4bcc5",
        },
        {"": 2407, "train": 1211, "test": 1196},
    ),
    _describe_mulan(
        "yeast",
        (2417, 103, 14),
        "genes, true labels",
        _as_whole("yeast.arff"),
        {
            "yeast.arff": "55c07a3b6ff885ae338fb6987a1d57f55572b29809922c2822c4885c61230dd7",
            "yeast.xml": "c3056cc26444b5158b1588d1b73bec9c45429e10f0957ad085903423cb81f247",
        },
    ),
    _describe_mulan(
        "enron",
        (1702, 1001, 53),
        "e-mails, true labels",
        _as_whole("enron.arff"),
        {
            "enron.arff": "d0889ef0576d4e7b5ec0df3b3e4760e476ac11a6e7d7ddeee4c4a34470dedf97",
            "enron.xml": "ed40c92d7f613eed51714912cab10dddc4ce456262137d8fef230d44c7f4457b",
        },
    ),
    _describe_mulan(
        "bibtex",
        (7395, 1836, 159),
        "references, true labels",
        _as_whole("bibtex.arff"),
        {
            "bibtex.arff": "a282a6d1fb3cdaf39bde3f81cd4e6079850a7a538a6bc44f8b4ed95dfe1e5014",
            "bibtex.xml": "08fe20013c1e75dcf1888c185f5187c95e76495b8518ce289b4d3afce38d1232",
        },
    ),
    _describe_mulan(
        "delicious",
        (16105, 500, 983),
        "web pages, true labels",
        _as_whole("delicious.arff"),
        {
            "delicious.arff": "b944de0bca910050c11d97eed57d17b073110ea3646a587f3d15d127cf581aab",
            "delicious.xml": "4e0c0f93c7d86a39b9fca4aaefaa00e9428f2c80277732dfbf03ca48e2c14da2",
        },
    ),
    _describe_mulan(
        "Corel5k",
        (5000, 499, 374),
        "photos, true labels",
        _as_whole("Corel5k-sparse.arff"),
        {
            "Corel5k-sparse.arff": (
                "12c06161d2367f919f6da912089a6c9180c115cfcefa37afacfdeb903930eb7e"
            ),
            "Corel5k.xml": "54ef6a6ccb7ca9b77524052b34b306d5d501661a5609b9d1cc7085b2b597679d",
        },
    ),
    *ANSWERED,
)
# The data sets that have a name, by that name; `load_dataset` reads them.
KNOWN: Mapping[str, NamedDataset] = {named.name: named for named in _ALL}
