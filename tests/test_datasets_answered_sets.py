"""Molecules, reports about pictures and texts, in the forms that their authors publish."""

import gzip
import sys
from pathlib import Path

import numpy as np
import pytest

from comes.answers import State
from comes.datasets import KNOWN, load_dataset, open_dataset
from comes.datasets.chexpert import FINDINGS, read_chexpert
from comes.datasets.go_emotions import read_go_emotions
from comes.datasets.molecules import read_molecules
from comes.datasets.reading import Reading
from comes.datasets.verified_images import read_open_images
from comes.errors import ComesWarning
from image_folders import save_images
from refusals import refused

MUV = "MUV-466,MUV-548,mol_id,smiles\n,0,CID1,CCO\n1,,CID2,c1ccccc1\n0,1,CID3,CC(=O)O\n"
TOXCAST = "smiles,ACEA_T47D,APR_HepG2\nCCO,0.0,\nc1ccccc1,1.0,0.0\n"
NOT_ASKED, NO, YES, MAYBE = State.NOT_ASKED, State.NO, State.YES, State.MAYBE


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder of data, and an empty cache."""
    for name, variable in (("data", "COMES_DATA"), ("cache", "COMES_CACHE")):
        (tmp_path / name).mkdir()
        monkeypatch.setenv(variable, str(tmp_path / name))
    return tmp_path / "data"


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.needs("rdkit")
def test_assays_are_yes_no_and_not_tested_and_molecules_are_fingerprints(home: Path) -> None:
    muv = read_molecules(write(home / "muv.csv", MUV), Reading())
    assert muv.label_names == ["MUV-466", "MUV-548"] and muv.items == ["CID1", "CID2", "CID3"]
    assert muv.known_answers().codes.tolist() == [[NOT_ASKED, NO], [YES, NOT_ASKED], [NO, YES]]
    assert muv.X.shape == (3, 1024) and set(muv.X.data) == {1.0}
    toxcast = read_molecules(write(home / "toxcast.csv", TOXCAST), Reading())
    assert toxcast.known_answers().codes.tolist() == [[NO, NOT_ASKED], [YES, NO]]
    assert toxcast.items is None
    np.testing.assert_array_equal(toxcast.X.toarray(), muv.X[:2].toarray())  # of the same molecules


@pytest.mark.needs("rdkit")
def test_fingerprints_are_morgans_and_are_kept(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from rdkit import Chem
    from rdkit.Chem.rdFingerprintGenerator import GetMorganGenerator

    path = write(home / "muv.csv", MUV)
    X = read_molecules(path, Reading()).X
    generator = GetMorganGenerator(radius=2, fpSize=1024)
    for row, smiles in enumerate(("CCO", "c1ccccc1", "CC(=O)O")):
        bits = generator.GetFingerprintAsNumPy(Chem.MolFromSmiles(smiles))
        np.testing.assert_array_equal(X[[row]].toarray()[0], bits)
    monkeypatch.setitem(sys.modules, "rdkit", None)  # what is kept needs no rdkit
    assert (read_molecules(path, Reading()).X != X).nnz == 0
    other = write(home / "other.csv", MUV.replace("CCO", "CCN"))
    with refused(r"need rdkit; .* pip install 'comes\[chem\]'"):
        read_molecules(other, Reading())
    features = write(home / "features.csv", "item,x\nCID3,3\nCID1,1\nCID2,2\n")
    alone = read_molecules(other, Reading(features=features))
    assert alone.X is None and alone.items == ["CID1", "CID2", "CID3"]


@pytest.mark.needs("rdkit")
def test_molecules_that_cannot_be_read_are_left_out_and_named(home: Path) -> None:
    path = write(home / "muv.csv", MUV.replace("c1ccccc1", "c1ccc"))
    with pytest.warns(ComesWarning, match="1 of 3 molecules cannot be read .* left out: 'c1ccc'"):
        dataset = read_molecules(path, Reading())
    assert dataset.items == ["CID1", "CID3"] and len(dataset) == 2
    assert dataset.known_answers().codes.tolist() == [[NOT_ASKED, NO], [NO, YES]]


def test_a_table_that_is_no_table_of_assays(home: Path) -> None:
    cases: list[tuple[str, str]] = [
        (MUV.replace("smiles", "structure"), "should have a column 'smiles'"),
        (MUV.replace("0,1,CID3", "0,2,CID3"), "'MUV-548' should be 1 .* got .*2.* at row 2"),
        (MUV.replace("0,1,CID3", "0,active,CID3"), "'MUV-548' .* got 'active' at row 2"),
    ]
    for text, message in cases:
        with refused(message):
            read_molecules(write(home / "muv.csv", text), Reading())


@pytest.mark.needs("rdkit")
def test_tox21_by_name_compressed_as_it_is_published(home: Path) -> None:
    assays = [f"A{k}" for k in range(12)]
    text = ",".join([*assays, "mol_id", "smiles"]) + "\n" + "1," + "," * 10 + "0,TOX1,CCO\n"
    (home / "chem").mkdir()
    with gzip.open(home / "chem" / "tox21.csv.gz", "wt") as file:
        file.write(text)
    dataset = open_dataset("tox21")
    assert str(dataset) == (
        "1 rows, 1024 features, 12 labels, 2 of 12 pairs asked: 1 no, 1 yes, 0 maybe"
    )
    with gzip.open(home / "chem" / "tox21.csv.gz", "wt") as file:
        file.write(MUV)
    with refused("Tox21 has 1024 x 12 .* has 1024 x 2: another version"):
        open_dataset("tox21")


def test_a_set_that_is_not_at_hand_says_where_to_put_what(home: Path) -> None:
    with refused(r"Put muv.csv.gz at .*chem.muv.csv.gz; .*deepchem"):
        load_dataset("muv")
    with refused(r"Put train.csv at .*chexpert.train.csv; .*stanford"):
        load_dataset("CheXpert", "train")


HEADER = ",".join(["Path", "Sex", "Age", "Frontal/Lateral", "AP/PA", *FINDINGS])
FIRST = "CheXpert-v1.0-small/train/patient00001/study1/view1_frontal.jpg,Female,68,Frontal,AP"
SECOND = "CheXpert-v1.0-small/train/patient00002/study2/view1_frontal.jpg,Male,87,Frontal,AP"
REPORTS = f"{HEADER}\n{FIRST},1.0,,,,,,,,,0.0,,,,1.0\n{SECOND},,-1.0,1.0,,,,,,,,,,1.0,\n"


def test_reports_are_yes_no_maybe_and_not_asked(home: Path) -> None:
    path = write(home / "chexpert" / "train.csv", REPORTS)
    dataset = read_chexpert(path, Reading())
    said = {
        (row, dataset.label_names[label]): State(int(code))
        for (row, label), code in np.ndenumerate(dataset.known_answers().codes)
        if code
    }
    assert said == {
        (0, "No Finding"): YES,
        (0, "Pneumothorax"): NO,
        (0, "Support Devices"): YES,
        (1, "Enlarged Cardiomediastinum"): MAYBE,
        (1, "Cardiomegaly"): YES,
        (1, "Fracture"): YES,
    }
    assert dataset.X is None and dataset.items is not None
    assert dataset.items[0] == "train/patient00001/study1/view1_frontal.jpg"


def test_radiographs_beside_their_table_or_elsewhere(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dataclasses import replace

    from comes.datasets import named

    small = replace(KNOWN["CheXpert"], rows={"train": 2, "valid": 1})
    monkeypatch.setattr(named, "KNOWN", {**KNOWN, "CheXpert": small})
    path = write(home / "CheXpert-v1.0-small" / "train.csv", REPORTS)
    names = [f"train/patient0000{k}/study{k}/view1_frontal.jpg" for k in (1, 2)]
    save_images(home / "elsewhere", names)
    assert load_dataset("chexpert", "train").X is None
    assert load_dataset("chexpert", "train", images=home / "elsewhere").X[1].shape == (2, 2, 3)
    save_images(path.parent, names)
    assert load_dataset("chexpert", "train").known_images().names == names
    everything = ",".join(["0.0"] * 13 + ["1.0"])
    write(path.with_name("valid.csv"), f"{HEADER}\n{FIRST},{everything}\n")
    assert load_dataset("chexpert", "valid").known_relevant().sum() == 1  # experts said it all


def test_reports_with_another_number_or_column(home: Path) -> None:
    path = write(home / "train.csv", REPORTS.replace("-1.0", "-2.0"))
    with refused("'Enlarged Cardiomediastinum' should .* got -2.0 at row 1"):
        read_chexpert(path, Reading())
    path = write(home / "train.csv", REPORTS.replace("Edema", "Oedema"))
    with refused("no column 'Edema'"):
        read_chexpert(path, Reading())


VERIFIED = (
    "ImageID,Source,LabelName,Confidence\n"
    "000595fe,verification,/m/0cat,1\n000595fe,verification,/m/0dog,0\n"
    "000595fe,crowdsource-verification,/m/0cat,1\n000b4dcf,verification,/m/0dog,1\n"
    "000b4dcf,crowdsource-verification,/m/0dog,0\n"
)
CLASSES = "/m/0cat,Cat\n/m/0dog,Dog\n/m/0fox,Fox\n"


def test_verified_labels_are_yes_and_no_and_disagreement_is_maybe(home: Path) -> None:
    for name, header in (("plain", ""), ("headed", "LabelName,DisplayName\n")):
        classes = write(home / name / "classes.csv", header + CLASSES)
        table = write(classes.parent / "validation-annotations-human-boxable.csv", VERIFIED)
        dataset = read_open_images(table, classes, Reading())
        assert dataset.label_names == ["Cat", "Dog", "Fox"] and dataset.X is None
        assert dataset.items == ["000595fe.jpg", "000b4dcf.jpg"]
        assert dataset.known_answers().codes.tolist() == [
            [YES, NO, NOT_ASKED],
            [NOT_ASKED, MAYBE, NOT_ASKED],
        ]
        save_images(classes.parent / "validation", ["000595fe.jpg", "000b4dcf.jpg"])
        assert read_open_images(table, classes, Reading()).X[0].shape == (2, 2, 3)

    classes = write(home / "classes.csv", CLASSES.replace("Fox", "Dog"))
    table = write(home / "test-annotations.csv", VERIFIED)
    names = read_open_images(table, classes, Reading()).label_names
    assert names == ["Cat", "Dog (/m/0dog)", "Dog (/m/0fox)"]


def test_labels_that_nobody_verified(home: Path) -> None:
    cases: list[tuple[str, str]] = [
        (VERIFIED.replace("0cat,1", "0cat,0.8"), "1 or 0, as people .* 0.8 at row 0.* human"),
        (VERIFIED.replace("/m/0dog,1", "/m/0ape,1"), "class '/m/0ape', which classes.csv does not"),
        (VERIFIED.replace("Confidence", "Sure"), "Confidence is missing"),
    ]
    for text, message in cases:
        classes = write(home / "classes.csv", CLASSES)
        with refused(message):
            read_open_images(write(home / "test.csv", text), classes, Reading())


COMMENTS = 'My "favourite" food\t2\teebbqej\nWHY\t0,1\ted00q6i\nNA\t1\teezlygj\n'


def test_comments_have_their_emotions_by_number(home: Path) -> None:
    names = write(home / "labels.txt", "joy\nfear\nneutral\n")
    table = write(home / "train.tsv", COMMENTS)
    dataset = read_go_emotions([table, write(home / "dev.tsv", "hm\t1\tx\n")], names)
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
        with refused(rf"train.tsv: line 2 .* got '{numbers}'"):
            read_go_emotions([table], names)
