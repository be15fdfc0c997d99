"""VOC, CUB, Tox21 and GoEmotions in small files of their layouts; real files of COMES_DATA."""

import gzip
import sys
import tracemalloc
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from comes.answers import State
from comes.datasets import Dataset, ReadOptions, catalogue, open_dataset, write_dataset
from comes.datasets.catalogue import VOC_CLASSES, read_cub, read_go_emotions, read_tox21, read_voc
from comes.errors import ComesWarning
from comes.metrics import average_precision, count_degenerate
from image_folders import make_cub, make_voc
from refusals import refused


def voc(folder: Path, split: str = "train", **fields: Any) -> Dataset:
    path = folder / "ImageSets" / "Main" / f"aeroplane_{split}.txt"
    return read_voc([path], split, ReadOptions(**fields))


def cub(folder: Path, split: str = "", **fields: Any) -> Dataset:
    return read_cub([folder / "images.txt"], split, ReadOptions(**fields))


def test_voc_difficult_objects_are_irrelevant_unless_asked(tmp_path: Path) -> None:
    folder = make_voc(tmp_path / "VOC2007")
    dataset = voc(folder)
    assert dataset.label_names == VOC_CLASSES and dataset.items == [
        f"00000{k}.jpg" for k in range(3)
    ]
    cat, dog, person = (VOC_CLASSES.index(name) for name in ("cat", "dog", "person"))
    assert np.argwhere(dataset.known_relevant()).tolist() == [[0, cat], [1, dog]]
    with_difficult = voc(folder, difficult="relevant").known_relevant()
    assert np.argwhere(with_difficult).tolist() == [[0, cat], [1, cat], [1, dog], [2, person]]
    assert dataset.X[2].shape == (2, 2, 3)


def test_a_bad_list_of_voc_is_named(tmp_path: Path) -> None:
    cases: list[tuple[str, str]] = [
        ("000000 -1\n000001 -1\n", "boat_train.txt cannot .* images of all classes: it has others"),
        ("000000 -1\n000000 -1\n000002 1\n", "boat_train.txt cannot be read .*it has others"),
        ("000000 -1\n000001 7\n000002 1\n", "1, 0 and -1; got 7.0 for 000001.jpg and boat"),
        ("000000\n", "boat_train.txt"),
        ("", "boat_train.txt"),
    ]
    folder = make_voc(tmp_path / "VOC2007")
    with refused("aeroplane_val.txt cannot be read"):
        voc(folder, "val")
    for text, message in cases:
        (folder / "ImageSets" / "Main" / "boat_train.txt").write_text(text)
        with refused(message):
            voc(folder)


def test_cub_attributes_and_official_split(tmp_path: Path) -> None:
    folder = make_cub(tmp_path)
    dataset = cub(folder)
    assert dataset.label_names == ["bill::long", "bill::short", "wing::blue"]
    assert dataset.known_relevant().astype(int).tolist() == [[0, 1, 1], [0, 0, 1]]
    assert dataset.items == ["001.A/a.jpg", "002.B/b c.jpg"]
    assert cub(folder, "train").items == ["001.A/a.jpg"]
    assert cub(folder, "test").items == ["002.B/b c.jpg"]

    for place in ("CUB_200_2011", "CUB_200_2011/attributes"):
        home = tmp_path / place.replace("/", " ")
        folder = make_cub(home)
        (home / "attributes.txt").rename(home / place / "attributes.txt")
        assert len(cub(folder).label_names) == 3


def test_a_bad_file_of_cub_is_named(tmp_path: Path) -> None:
    cases: list[tuple[str, str | None, str]] = [
        ("images.txt", "1 a.jpg\n3 b.jpg\n", r"line 2 should be '2 NAME'; got \['3', 'b.jpg'\]"),
        ("attributes/image_attribute_labels.txt", "1 1 0 3 2.0\n", "each of 2 images and 3 attrib"),
        ("attributes/image_attribute_labels.txt", "1 x 0 3 2.0\n", "cannot be read"),
        ("train_test_split.txt", "1 1\n", "has 1 lines for 2 images"),
        ("../attributes.txt", None, "attributes.txt cannot be read"),
        ("images.txt", None, "images.txt cannot be read"),
    ]
    for k, (file, text, message) in enumerate(cases):
        folder = make_cub(tmp_path / str(k))
        (folder / file).unlink() if text is None else (folder / file).write_text(text)
        with refused(message):
            cub(folder, "train")
    (folder / "images.txt").write_bytes(b"1 \xff\n")
    with refused("images.txt cannot be read"):
        cub(folder)


def test_broken_images_of_a_set_can_be_skipped(tmp_path: Path) -> None:
    folder = make_voc(tmp_path / "VOC2007")
    (folder / "JPEGImages" / "000001.jpg").write_text("broken")
    with pytest.warns(ComesWarning, match="1 images cannot be read"):
        assert voc(folder, skip_broken=True).items == [
            "000000.jpg",
            "000002.jpg",
        ]
    folder = make_cub(tmp_path)
    (folder / "images" / "001.A" / "a.jpg").write_text("broken")
    with pytest.warns(ComesWarning, match="1 images cannot be read"):
        assert cub(folder, skip_broken=True).items == ["002.B/b c.jpg"]


def test_lines_of_cub_are_read_by_their_numbers(tmp_path: Path) -> None:
    folder = make_cub(tmp_path)
    path = folder / "attributes" / "image_attribute_labels.txt"
    lines = path.read_text().splitlines()
    path.write_text("\n".join(reversed(lines)))
    assert cub(folder).known_relevant().astype(int).tolist() == [
        [0, 1, 1],
        [0, 0, 1],
    ]
    for wrong in ("1 1 2 3 1.0", "0 1 1 3 1.0", "1 4 1 3 1.0"):
        path.write_text("\n".join([wrong, *lines[1:]]))
        with refused("cannot be read as lines 'image attribute 0.1"):
            cub(folder)


ASSAYS = "SR-p53,NR-AR,mol_id,smiles\n,0,TOX1,CCO\n1,,TOX2,c1ccccc1\n0,1,TOX3,CC(=O)O\n"
NOT_ASKED, NO, YES = State.NOT_ASKED, State.NO, State.YES


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def tox21(path: Path, **fields: Any) -> Dataset:
    return read_tox21([path], "", ReadOptions(**fields))


def compute_rings(smiles: list[str]) -> tuple[Any, Any]:
    """Stand in for rdkit: a bit where there is a ring; a ring that is open cannot be read."""
    readable = np.array([text != "c1ccc" for text in smiles])
    bits = np.zeros((len(smiles), 1024), dtype=np.float32)
    bits[:, 0] = ["c1" in text for text in smiles]
    return sparse.csr_matrix(bits[readable]), readable


def test_assays_are_yes_no_and_not_tested(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogue, "morgan_fingerprints", compute_rings)
    path = write(home / "tox21.csv", ASSAYS)
    dataset = tox21(path)
    assert dataset.label_names == ["SR-p53", "NR-AR"] and dataset.items == ["TOX1", "TOX2", "TOX3"]
    assert dataset.known_answers().codes.tolist() == [[NOT_ASKED, NO], [YES, NOT_ASKED], [NO, YES]]
    assert dataset.X.shape == (3, 1024) and dataset.X[:, 0].toarray().ravel().tolist() == [0, 1, 0]
    for unnamed in (ASSAYS.replace("TOX2", ""), ASSAYS.replace("TOX2", "TOX1")):
        assert tox21(write(path, unnamed)).items is None

    write(path, ASSAYS.replace("c1ccccc1", "c1ccc"))
    with pytest.warns(ComesWarning, match="1 of 3 molecules cannot be read .* left out: 'c1ccc'"):
        dataset = tox21(path)
    assert dataset.items == ["TOX1", "TOX3"] and dataset.X.shape == (2, 1024)
    assert dataset.known_answers().codes.tolist() == [[NOT_ASKED, NO], [NO, YES]]
    write(path, "A,smiles\n1,c1ccc\n")
    with pytest.warns(ComesWarning, match="1 of 1 molecules"), refused("at least one row"):
        tox21(path)


def test_only_fingerprints_need_rdkit(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(home / "tox21.csv", ASSAYS)
    monkeypatch.setitem(sys.modules, "rdkit", None)
    with refused(r"need rdkit; .* pip install 'comes\[chem\]'"):
        tox21(path)
    features = write(home / "features.csv", "item,x\nTOX3,3\nTOX1,1\nTOX2,2\n")
    alone = tox21(path, features=features)
    assert alone.X is None and alone.items == ["TOX1", "TOX2", "TOX3"]


@pytest.mark.needs("rdkit")
def test_fingerprints_are_morgans(home: Path) -> None:
    from rdkit import Chem
    from rdkit.Chem.rdFingerprintGenerator import GetMorganGenerator

    X = tox21(write(home / "tox21.csv", ASSAYS)).X
    generator = GetMorganGenerator(radius=2, fpSize=1024)
    for row, smiles in enumerate(("CCO", "c1ccccc1", "CC(=O)O")):
        bits = generator.GetFingerprintAsNumPy(Chem.MolFromSmiles(smiles))
        np.testing.assert_array_equal(X[[row]].toarray()[0], bits)
    with pytest.warns(ComesWarning, match="1 of 3 molecules cannot be read"):
        tox21(write(home / "tox21.csv", ASSAYS.replace("c1ccccc1", "c1ccc")))


def test_a_table_that_is_no_table_of_assays(home: Path) -> None:
    cases: list[tuple[str, str]] = [
        (ASSAYS.replace("smiles", "structure"), "table of smiles .*'smiles' is missing"),
        (ASSAYS.replace("0,1,TOX3", "0,2,TOX3"), "'NR-AR' should hold '1', '0' or .*found '2'"),
        (ASSAYS.replace("0,1,TOX3", "0,active,TOX3"), "tox21.csv .*'NR-AR' .*found 'active'"),
    ]
    for text, message in cases:
        with refused(message):
            tox21(write(home / "tox21.csv", text))
    with gzip.open(home / "tox21.csv.gz", "wt") as file:
        file.write(ASSAYS * 100)
    (home / "tox21.csv.gz").write_bytes((home / "tox21.csv.gz").read_bytes()[:-20])
    with refused("tox21.csv.gz cannot be read"):
        tox21(home / "tox21.csv.gz")


def test_tox21_by_name_compressed_as_it_is_published(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalogue, "morgan_fingerprints", compute_rings)
    with refused(r"Put tox21.csv.gz at .*data.chem.tox21.csv.gz; .*deepchem"):
        open_dataset("tox21")
    assays = [f"A{k}" for k in range(12)]
    text = ",".join([*assays, "mol_id", "smiles"]) + "\n" + "1," + "," * 10 + "0,TOX1,CCO\n"
    (home / "data" / "chem").mkdir()
    with gzip.open(home / "data" / "chem" / "tox21.csv.gz", "wt") as file:
        file.write(text)
    assert str(open_dataset("tox21")) == (
        "1 row, 1024 features, 12 labels, 2 of 12 pairs asked: 1 no, 1 yes, 0 maybe"
    )
    with gzip.open(home / "data" / "chem" / "tox21.csv.gz", "wt") as file:
        file.write(ASSAYS)
    with refused("Tox21 has 1024 x 12 .* has 1024 x 2: another version"):
        open_dataset("tox21")


COMMENTS = 'My "favourite" food\t2\teebbqej\nWHY\t0,1\ted00q6i\nNA\t1\teezlygj\n'


def test_comments_have_their_emotions_by_number(home: Path) -> None:
    names = write(home / "labels.txt", "joy\nfear\nneutral\n")
    table = write(home / "train.tsv", COMMENTS)
    more = write(home / "dev.tsv", "hm\t1\tx\n")
    dataset = read_go_emotions([table, more, names], "", ReadOptions())
    assert dataset.X["text"].tolist() == ['My "favourite" food', "WHY", "NA", "hm"]
    assert dataset.known_relevant().astype(int).tolist() == [
        [0, 0, 1],
        [1, 1, 0],
        [0, 1, 0],
        [0, 1, 0],
    ]
    assert dataset.items == ["eebbqej", "ed00q6i", "eezlygj", "x"]

    for numbers in ("3", "joy", "0;1", ""):
        names = write(home / "labels.txt", "joy\nfear\nneutral\n")
        table = write(home / "train.tsv", COMMENTS.replace("0,1", numbers))
        with refused(f"GoEmotions, lines .*: label '{numbers}' occurs in a set but is not one"):
            read_go_emotions([table, names], "", ReadOptions())


read_once = cache(open_dataset)


@pytest.mark.needs("pml")
def test_yeast_counts_stay_sparse_and_are_as_described(pml_data: Path) -> None:
    dataset = read_once("YeastBP")
    assert sparse.issparse(dataset.X)
    assert dataset.X.shape == (6139, 6139)
    assert count_degenerate(dataset.known_relevant())["rows_without_relevant"] == 1882
    assert str(dataset).startswith("6139 rows, 6139 features, 217 labels, 5.93 candidates per row")


@pytest.mark.needs("pml")
def test_yeast_takes_little_memory(pml_data: Path) -> None:
    """At the peak, the dense counts as stored (38 MB) and what scipy needs to unpack them."""
    tracemalloc.start()
    dataset = open_dataset(pml_data / "YeastBP.mat")
    kept, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert dataset.X.nnz == 552_430
    assert kept < 10e6 and peak < 70e6


@pytest.mark.needs("pml")
def test_pml_sets_by_name() -> None:
    for name, candidates, relevant in (
        ("YeastBP", 5.93, 5.54),
        ("YeastCC", 1.39, 1.35),
        ("YeastMF", 1.04, 1.01),
        ("mirflickr5000", 3.35, 1.77),
    ):
        dataset = read_once(name)
        assert dataset.candidates is not None, name
        assert dataset.candidates.sum(axis=1).mean() == pytest.approx(candidates, abs=0.005), name
        assert dataset.known_relevant().sum(axis=1).mean() == pytest.approx(relevant, abs=0.005)


@pytest.mark.needs("mulan")
def test_mulan_sets_by_name() -> None:
    for name, cardinality, is_sparse in (  # the published ones, emotions' truncated
        ("emotions", 1.868, False),
        ("scene", 1.074, False),
        ("enron", 3.378, True),
    ):
        dataset = open_dataset(name)
        found = dataset.known_relevant().sum(axis=1).mean()
        assert found == pytest.approx(cardinality, abs=0.0005), name
        assert sparse.issparse(dataset.X) == is_sparse, name


@pytest.mark.needs("mulan")
def test_an_official_split_is_a_part_of_the_whole(mulan_data: Path) -> None:
    whole, train, test = (open_dataset(f"scene{split}") for split in ("", ":train", ":test"))
    np.testing.assert_array_equal(whole.X, np.concatenate([train.X, test.X]))
    parts = [train.known_relevant(), test.known_relevant()]
    np.testing.assert_array_equal(whole.relevant, np.concatenate(parts))


@pytest.mark.needs("images")
def test_voc_images_are_read_from_their_archive(image_data: Path) -> None:
    dataset = open_dataset("VOC2012-160px:val")
    assert dataset.items is not None and dataset.items[0] == "2008_000002.jpg"
    assert dataset.X[0].shape == (160, 160, 3) and dataset.X[5822].std() > 0
    assert dataset.known_relevant().sum(axis=1).mean() == pytest.approx(1.43, abs=0.005)
    assert open_dataset("VOC2012-160px:val", difficult="relevant").known_relevant().sum() > (
        dataset.known_relevant().sum()
    )


@pytest.mark.needs("pml")
def test_real_files_survive_a_conversion(pml_data: Path, tmp_path: Path) -> None:
    dataset = read_once("mirflickr5000")
    for ending in (".npz", ".mat", ".parquet"):
        write_dataset(dataset, tmp_path / f"copy{ending}")
        copy = open_dataset(tmp_path / f"copy{ending}")
        np.testing.assert_array_equal(copy.X, dataset.X, ending)
        np.testing.assert_array_equal(copy.candidates, dataset.candidates, ending)
        np.testing.assert_array_equal(copy.relevant, dataset.relevant, ending)


@pytest.mark.needs("pml")
def test_scoring_by_frequency_alone_looks_good_in_the_convention_of_scikit_learn(
    pml_data: Path,
) -> None:
    """The numbers of docs/reference/metrics.md."""
    relevant = read_once(pml_data / "YeastCC.mat").known_relevant()
    scores = np.tile(relevant.mean(axis=0), (len(relevant), 1))
    assert round(average_precision(scores, relevant), 3) == 0.181
    assert round(average_precision(scores, relevant, "sklearn"), 3) == 0.676
