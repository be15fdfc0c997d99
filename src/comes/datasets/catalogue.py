"""The data sets that have a name: their sizes, their files, and how they are read."""

import json
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from comes.datasets.arff import read_arff
from comes.datasets.coco import Unannotated, coco_dataset, load_json
from comes.datasets.cub import read_cub
from comes.datasets.dataset import Dataset, join_images
from comes.datasets.needed import KnownDataset, Needed
from comes.datasets.pml import read_pml_mat
from comes.datasets.voc import read_voc, read_voc_archive
from comes.errors import ComesError


def _read_pml(paths: Sequence[Path], _: str) -> Dataset:
    return read_pml_mat(paths[0])


def _read_mulan(paths: Sequence[Path], _: str) -> Dataset:
    *tables, xml = paths
    parts = [read_arff(path, xml=xml) for path in tables]
    if len(parts) == 1:
        return parts[0]
    X = [part.X for part in parts]
    relevant = np.concatenate([part.known_relevant() for part in parts])
    stacked = sparse.vstack(X) if sparse.issparse(X[0]) else pd.concat(X, ignore_index=True)
    return replace(parts[0], X=stacked, relevant=relevant)


def _read_voc(paths: Sequence[Path], split: str, **options: Any) -> Dataset:
    return read_voc(paths[0].parents[2], split, **options)


def _read_voc_archive(paths: Sequence[Path], split: str, **options: Any) -> Dataset:
    return read_voc_archive(paths[0], paths[1], split, **options)


def _read_cub(paths: Sequence[Path], split: str, **options: Any) -> Dataset:
    return read_cub(paths[0].parent, split or None, **options)


def _read_coco(
    paths: Sequence[Path],
    split: str,
    unannotated: Unannotated = "drop",
    skip_broken: bool = False,
) -> Dataset:
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
    return join_images(coco_dataset(content, annotations, unannotated), images, skip_broken)


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


def _pml(
    name: str, sizes: tuple[int, int, int], about: str, address: str = "", checksum: str = ""
) -> KnownDataset:
    n, d, q = sizes
    needed = Needed((f"{name}.mat", f"pml/{name}.mat"), address, checksum)
    by_hand = f"its authors publish it as {ZHANG}pml_{name}.zip"
    return KnownDataset(name, about, {"": n}, d, q, lambda _: (needed,), _read_pml, (), by_hand)


def _mulan(
    name: str,
    sizes: tuple[int, int, int],
    about: str,
    files: Mapping[str, tuple[str, ...]],  # the tables of a split
    checksums: Mapping[str, str],
    rows: Mapping[str, int] | None = None,
) -> KnownDataset:
    n, d, q = sizes

    def needs(split: str) -> tuple[Needed, ...]:
        return tuple(
            Needed(
                (file, f"mulan/{file}"),
                f"{MULAN}{name.lower()}/{file}",
                f"sha256:{checksums[file]}",
            )
            for file in (*files[split], f"{name}.xml")
        )

    return KnownDataset(name, about, rows or {"": n}, d, q, needs, _read_mulan)


def _voc(
    year: str,
    about: str,
    rows: Mapping[str, int],
    tars: Mapping[str, tuple[str, str]],  # file and checksum; "trainval" holds what has none
) -> KnownDataset:
    def needs(split: str) -> tuple[Needed, ...]:
        file, checksum = tars.get(split, tars["trainval"])
        place = f"VOCdevkit/VOC{year}/ImageSets/Main/aeroplane_{split}.txt"
        return (Needed((place,), f"{VOC}voc{year}/{file}", f"md5:{checksum}", is_tar=True),)

    options = ("difficult", "skip_broken")
    return KnownDataset(f"VOC{year}", about, rows, None, 20, needs, _read_voc, options)


def _coco_needs(split: str) -> tuple[Needed, ...]:
    checksums = {
        "train": "ede4087e640bddba550e090eae701092534b554b42b05ac33f0300b984b31775",
        "val": "fe9be816052049c34717e077d9e34aa60814a55679f804cd043e3cbee3b9fde0",
    }
    file = "annotations_trainval2014.zip"
    return (
        Needed(
            (f"COCO2014/annotations/instances_{split}2014.json", f"COCO2014/{file}"),
            f"{COCO}annotations/{file}",
            "sha256:031296bbc80c45a1d1f76bf9a90ead27e94e99ec629208449507a4917a3bf009",
        ),
        Needed(
            (f"COCO2014/{split}2014", f"COCO2014/{split}2014.zip"),
            f"{COCO}zips/{split}2014.zip",
            f"sha256:{checksums[split]}",
        ),
    )


def _cub_needs(_: str) -> tuple[Needed, ...]:
    checksum = "md5:97eceeb196236b17998738112f37df78"
    return (Needed(("CUB_200_2011/images.txt",), CUB, checksum, is_tar=True),)


def _small_voc_needs(split: str) -> tuple[Needed, ...]:
    files = ("voc2012-labels.csv", f"voc2012-160px-{split}.zip")
    return tuple(Needed((file, f"images/{file}")) for file in files)


def _whole(file: str) -> dict[str, tuple[str, ...]]:
    return {"": (file,)}


_ALL = (
    _pml("mirflickr", (10433, 100, 7), "photos, candidates from tags"),
    _pml("music_emotion", (6833, 98, 11), "songs, candidates from listeners"),
    _pml("music_style", (6839, 98, 10), "songs, candidates from listeners"),
    _pml(
        "YeastBP",
        (6139, 6139, 217),
        "proteins, biological processes",
        f"{YEAST}YeastBP.mat",
        "sha256:b70add8402d72038123407fb8f0f05f9c5344a182769143856283f821c8bf97e",
    ),
    _pml(
        "YeastCC",
        (6139, 6139, 50),
        "proteins, cellular components",
        f"{YEAST}YeastCC.mat",
        "sha256:8df70196c615551b39bcd819b3a3d099e2a40e9dfcf2ca5cb13271c3dbad23bf",
    ),
    _pml(
        "YeastMF",
        (6139, 6139, 39),
        "proteins, molecular functions",
        f"{YEAST}YeastMF.mat",
        "sha256:bd42e51ec848d847ef00d27574982c8ebc0f516246c68c6952d3ddf9424f02a7",
    ),
    _voc(
        "2007",
        "photos, true labels",
        {"trainval": 5011, "test": 4952, "train": 2501, "val": 2510},
        {
            "trainval": ("VOCtrainval_06-Nov-2007.tar", "c52e279531787c972589f7e41ab4ae64"),
            "test": ("VOCtest_06-Nov-2007.tar", "b6e924de25625d8de591ea690078ad9f"),
        },
    ),
    _voc(
        "2012",
        "photos, true labels",
        {"train": 5717, "val": 5823, "trainval": 11540},
        {"trainval": ("VOCtrainval_11-May-2012.tar", "6cd6e144f989b92b3379bac3b3de84fd")},
    ),
    KnownDataset(
        "CUB",
        "photos of birds, 312 attributes",
        {"": 11788, "train": 5994, "test": 5794},
        None,
        312,
        _cub_needs,
        _read_cub,
        ("skip_broken",),
    ),
    KnownDataset(
        "COCO2014",
        "photos, true labels",
        {"train": 82081, "val": 40137},
        None,
        80,
        _coco_needs,
        _read_coco,
        ("unannotated", "skip_broken"),
    ),
    _pml(
        "mirflickr5000",
        (5000, 100, 7),
        "5000 rows of mirflickr",
        MIRFLICKR5000,
        "sha256:85fe1ab7d65994fca93d03b12b4375478977e9325bc56857cc8850db88cbde66",
    ),
    KnownDataset(
        "VOC2012-160px",
        "VOC2012 at 160 x 160 pixels",
        {"train": 5717, "val": 5823},
        None,
        20,
        _small_voc_needs,
        _read_voc_archive,
        ("difficult", "skip_broken"),
        "it is a zip of images/NAME.jpg and a table image,split,CLASS... made from VOC2012",
    ),
    _mulan(
        "emotions",
        (593, 72, 6),
        "songs, true labels",
        _whole("emotions.arff"),
        {
            "emotions.arff": "6f2f790047073d1293ac0872c0d55f2dc98b6177802fc96c6b66b309dfee1e4b",
            "emotions.xml": "dbce8e6ccbbb2fcbfd9e9edbb230d7ed12692c6e13f59fdbc0161fa9b6cf2dc0",
        },
    ),
    _mulan(
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
    _mulan(
        "yeast",
        (2417, 103, 14),
        "genes, true labels",
        _whole("yeast.arff"),
        {
            "yeast.arff": "55c07a3b6ff885ae338fb6987a1d57f55572b29809922c2822c4885c61230dd7",
            "yeast.xml": "c3056cc26444b5158b1588d1b73bec9c45429e10f0957ad085903423cb81f247",
        },
    ),
    _mulan(
        "enron",
        (1702, 1001, 53),
        "e-mails, true labels",
        _whole("enron.arff"),
        {
            "enron.arff": "d0889ef0576d4e7b5ec0df3b3e4760e476ac11a6e7d7ddeee4c4a34470dedf97",
            "enron.xml": "ed40c92d7f613eed51714912cab10dddc4ce456262137d8fef230d44c7f4457b",
        },
    ),
    _mulan(
        "bibtex",
        (7395, 1836, 159),
        "references, true labels",
        _whole("bibtex.arff"),
        {
            "bibtex.arff": "a282a6d1fb3cdaf39bde3f81cd4e6079850a7a538a6bc44f8b4ed95dfe1e5014",
            "bibtex.xml": "08fe20013c1e75dcf1888c185f5187c95e76495b8518ce289b4d3afce38d1232",
        },
    ),
    _mulan(
        "delicious",
        (16105, 500, 983),
        "web pages, true labels",
        _whole("delicious.arff"),
        {
            "delicious.arff": "b944de0bca910050c11d97eed57d17b073110ea3646a587f3d15d127cf581aab",
            "delicious.xml": "4e0c0f93c7d86a39b9fca4aaefaa00e9428f2c80277732dfbf03ca48e2c14da2",
        },
    ),
    _mulan(
        "Corel5k",
        (5000, 499, 374),
        "photos, true labels",
        _whole("Corel5k-sparse.arff"),
        {
            "Corel5k-sparse.arff": (
                "12c06161d2367f919f6da912089a6c9180c115cfcefa37afacfdeb903930eb7e"
            ),
            "Corel5k.xml": "54ef6a6ccb7ca9b77524052b34b306d5d501661a5609b9d1cc7085b2b597679d",
        },
    ),
)
KNOWN: Mapping[str, KnownDataset] = {known.name: known for known in _ALL}
