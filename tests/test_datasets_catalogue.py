"""Data sets by name: where their files lie, what is downloaded; scenes of digits."""

import hashlib
import json
import shutil
import tarfile
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.io import savemat
from sklearn.datasets import load_digits

from comes.datasets import KNOWN, catalogue, make_scenes, open_dataset, read_features
from comes.datasets.catalogue import NamedDataset, Source
from comes.errors import ComesWarning
from image_folders import COCO, make_cub, make_voc, save_images
from refusals import refused
from serving import Server

PAPER = [
    "mirflickr",
    "music_emotion",
    "music_style",
    "YeastBP",
    "YeastCC",
    "YeastMF",
    "VOC2007",
    "VOC2012",
    "CUB",
    "COCO2014",
]


def small(monkeypatch: pytest.MonkeyPatch, name: str, **changes: Any) -> NamedDataset:
    """Let a name stand for a small data set of the same form."""
    changed = replace(KNOWN[name], **changes)
    monkeypatch.setattr(catalogue, "KNOWN", {**KNOWN, name: changed})
    return changed


def test_the_papers_ten_have_names_and_a_way_to_get_them() -> None:
    assert list(KNOWN)[:10] == PAPER
    for entry in KNOWN.values():
        for split in entry.rows:
            for source in entry.sources[split]:
                assert bool(source.address) == bool(source.checksum)
                assert source.address or entry.by_hand, entry.name
                kind, _, digits = source.checksum.partition(":")
                assert not kind or len(digits) == {"sha256": 64, "md5": 32}[kind]


def test_a_set_without_address_says_which_file_to_put_where(home: Path) -> None:
    with refused(r"Put mirflickr.mat at .*data.pml.mirflickr.mat; .*zip"):
        open_dataset("mirflickr")


def write_pml(path: Path, n: int) -> None:
    labels = np.ones((7, n))
    savemat(path, {"data": np.ones((n, 100)), "target": labels, "partial_labels": labels})


def test_data_comes_before_the_cache_and_both_before_the_network(home: Path) -> None:
    (home / "cache" / "pml").mkdir()
    write_pml(home / "cache" / "pml" / "mirflickr.mat", 10433)
    assert len(open_dataset("MIRFlickr")) == 10433
    (home / "data" / "mirflickr.mat").write_text("damaged")
    with refused("cannot be read as a .mat file"):
        open_dataset("mirflickr")


def test_another_version_is_not_taken_for_the_named_one(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_pml(home / "data" / "mirflickr.mat", 5000)
    with refused("mirflickr has 10433 x 100 x 7 .*has 5000 x 100 x 7"):
        open_dataset("mirflickr")

    for d, q in ((99, 7), (100, 6)):
        small(monkeypatch, "mirflickr", rows={"": 20})
        labels = np.ones((q, 20))
        content = {"data": np.ones((20, d)), "target": labels, "partial_labels": labels}
        savemat(home / "data" / "mirflickr.mat", content)
        with refused("another version of it"):
            open_dataset("mirflickr")


def test_a_file_is_downloaded_into_the_cache_and_then_used_offline(
    home: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_pml(home / "upstream.mat", 5)
    server.content = (home / "upstream.mat").read_bytes()
    checksum = f"sha256:{hashlib.sha256(server.content).hexdigest()}"
    source = Source(("x.mat", "pml/x.mat"), server.address(), checksum)
    changed = small(monkeypatch, "mirflickr", rows={"": 5}, sources={"": (source,)})
    assert not changed.is_at_hand("") and changed.can_be_downloaded("")
    assert len(open_dataset("mirflickr")) == 5
    assert (home / "cache" / "pml" / "x.mat").exists()
    server.status = 500
    assert len(open_dataset("mirflickr")) == 5 and len(server.asked) == 1
    assert changed.is_at_hand("")


def tarred(folder: Path, name: str) -> bytes:
    with tarfile.open(folder / "all.tar", "w") as archive:
        archive.add(folder / name, name)
    content = (folder / "all.tar").read_bytes()
    shutil.rmtree(folder / name)
    return content


def test_an_archive_is_downloaded_unpacked_and_used_offline(
    home: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_voc(home / "VOCdevkit" / "VOC2007")
    server.content = tarred(home, "VOCdevkit")
    checksum = f"md5:{hashlib.md5(server.content).hexdigest()}"
    (source,) = KNOWN["VOC2007"].sources["train"]
    source = replace(source, address=server.address("voc.tar"), checksum=checksum)
    small(monkeypatch, "VOC2007", rows={"train": 3}, sources={"train": (source,)})
    for _ in range(2):
        dataset = open_dataset("VOC2007:train")
        assert len(dataset) == 3 and dataset.X[0].shape == (2, 2, 3)
    assert len(server.asked) == 1
    assert sorted(p.name for p in (home / "cache").iterdir()) == ["VOCdevkit"]
    assert open_dataset("VOC2007:train", difficult="relevant").known_relevant().sum() == 4


def test_an_archive_without_the_file_says_so(
    home: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "other").mkdir()
    server.content = tarred(home, "other")
    checksum = f"md5:{hashlib.md5(server.content).hexdigest()}"
    source = Source(("VOC/a.txt",), server.address("voc.tar"), checksum, is_tar=True)
    small(monkeypatch, "VOC2007", sources={"train": (source,)})
    with refused("voc.tar was unpacked, and VOC/a.txt was not in it"):
        open_dataset("VOC2007:train")


def test_cub_in_its_folder_with_features_of_ones_own(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_cub(home / "data")
    small(monkeypatch, "CUB", rows={"": 2, "train": 1}, n_labels=3)
    assert len(open_dataset("CUB")) == 2
    assert open_dataset("CUB:train").items == ["001.A/a.jpg"]

    np.savez(home / "X.npz", X=np.eye(2), items=["002.B/b c.jpg", "001.A/a.jpg"])
    dataset = open_dataset("CUB:train", features=home / "X.npz")
    assert dataset.known_features().tolist() == [[0, 1]]


def test_coco_in_its_folders_or_archives(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = home / "data" / "COCO2014"
    save_images(folder / "val2014", ["4.jpg", "7.jpg", "9.jpg"])
    (folder / "annotations").mkdir()
    (folder / "annotations" / "instances_val2014.json").write_text(json.dumps(COCO))
    small(monkeypatch, "COCO2014", rows={"val": 2}, n_labels=2)
    for are_zipped in (False, True):
        if are_zipped:
            put_into_archive(folder / "val2014", folder / "val2014.zip")
            put_into_archive(folder / "annotations", folder / "annotations_trainval2014.zip")
        dataset = open_dataset("COCO2014:val")
        assert dataset.items == ["9.jpg", "4.jpg"] and dataset.X[1].shape == (2, 2, 3)
        assert len(open_dataset("COCO2014:val", unannotated="keep")) == 3
    save_images(folder / "val2014", ["4.jpg"])
    (folder / "val2014" / "9.jpg").write_text("broken")
    with pytest.warns(ComesWarning, match="1 images"):
        assert open_dataset("COCO2014:val", skip_broken=True).items == ["4.jpg"]
    (folder / "annotations_trainval2014.zip").write_bytes(b"no zip")
    with refused("annotations_trainval2014.zip cannot be read"):
        open_dataset("COCO2014:val")


def put_into_archive(folder: Path, archive: Path) -> None:
    """Write the files of a folder to a .zip in its place."""
    with zipfile.ZipFile(archive, "w") as target:
        for path in folder.iterdir():
            target.write(path, f"{folder.name}/{path.name}")
    shutil.rmtree(folder)


def test_a_mistake_in_a_name_is_explained(home: Path) -> None:
    cases: list[tuple[str, dict[str, Any], str]] = [
        ("YeastPB", {}, "YeastPB does not exist. Did you mean the data set YeastBP"),
        ("VOC2007", {}, "has splits only; expected 'VOC2007:trainval' or 'VOC2007:test'"),
        ("scene:val", {}, "no split 'val'; expected 'scene' or 'scene:train'"),
        ("scene", {"difficult": "relevant"}, "'difficult' does not apply to scene"),
    ]
    for name, options, message in cases:
        with refused(message):
            open_dataset(name, **options)


def test_one_door_for_names_and_files(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_pml(home / "data" / "mirflickr.mat", 10433)
    monkeypatch.chdir(home / "data")
    assert len(open_dataset("mirflickr.mat")) == len(open_dataset("mirflickr")) == 10433
    with refused("says that its labels are candidates"):
        open_dataset("mirflickr", labels_are="complementary")
    with refused("YeastBB does not exist. Did you mean the data set Yeast"):
        open_dataset("YeastBB")
    with refused("'comes datasets' lists the data sets"):
        open_dataset("no/such/thing.npz")


def test_a_wrong_checksum_is_found_out_in_files_and_archives(
    home: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    for is_tar in (False, True):
        wrong = Source(("x.mat",), server.address("x.tar"), f"sha256:{'0' * 64}", is_tar=is_tar)
        small(monkeypatch, "mirflickr", sources={"": (wrong,)})
        with refused("checksum differs"):
            open_dataset("mirflickr")


def test_every_split_needs_its_own_files() -> None:
    assert "VOCtest" in KNOWN["VOC2007"].sources["test"][0].address
    assert "VOCtrainval" in KNOWN["VOC2007"].sources["val"][0].address
    files = {s: [n.places[0] for n in KNOWN["scene"].sources[s]] for s in KNOWN["scene"].rows}
    assert files["train"] == ["scene-train.arff", "scene.xml"]
    assert files["test"] == ["scene-test.arff", "scene.xml"]
    assert files[""] == ["scene-train.arff", "scene-test.arff", "scene.xml"]


ARFF = """@relation r
@attribute x numeric
@attribute sky {0,1}
@data
1,1
2,0
"""


def test_the_parts_of_a_set_may_lie_apart(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    emotions = small(monkeypatch, "emotions", rows={"": 2}, n_features=1, n_labels=1)
    (home / "data" / "emotions.arff").write_text(ARFF)
    assert not emotions.is_at_hand("") and emotions.can_be_downloaded("")
    (home / "cache" / "mulan").mkdir()
    (home / "cache" / "mulan" / "emotions.xml").write_text("<l><label name='sky'/></l>")
    assert emotions.is_at_hand("")
    dataset = open_dataset("emotions", labels=None, feature_columns=["x"], labels_are="candidates")
    assert dataset.candidates is not None and dataset.candidates.tolist() == [[True], [False]]
    assert read_features("emotions", ["x"])[0]["x"].tolist() == [1, 2]
    by_hand = Source(("emotions.arff",))
    assert replace(emotions, sources={"": (by_hand, emotions.sources[""][1])}).can_be_downloaded("")
    assert not replace(emotions, sources={"": (Source(("gone.arff",)), by_hand)}).can_be_downloaded(
        ""
    )


def test_splits_options_and_labels_through_the_one_door(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_cub(home / "data")
    small(monkeypatch, "CUB", rows={"": 2, "train": 1}, n_labels=3)
    assert open_dataset("CUB:train").items == ["001.A/a.jpg"]
    names = ["wing::blue", "bill::short", "bill::long"]
    assert open_dataset("cub", label_names=names).label_names == names
    (home / "data" / "CUB_200_2011" / "images" / "001.A" / "a.jpg").write_text("broken")
    with pytest.warns(ComesWarning, match="1 images"):
        assert len(open_dataset("CUB", skip_broken=True)) == 1
    monkeypatch.chdir(home)
    (home / "CUB").mkdir()  # a folder of that name does not hide it
    assert len(open_dataset("CUB")) == 2
    make_voc(home / "data" / "VOCdevkit" / "VOC2007")
    small(monkeypatch, "VOC2007", rows={"train": 3})
    assert open_dataset("VOC2007:train", difficult="relevant").known_relevant().sum() == 4
    (home / "own.csv").write_text("x,l\n1,a\n")
    with refused("'difficult' does not apply to .csv files"):
        open_dataset("own.csv", labels=["l"], difficult="relevant")


def test_data_that_is_no_folder_is_told(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMES_DATA", str(home / "gone"))
    with refused("COMES_DATA names .*gone, which is not a folder"):
        open_dataset("mirflickr")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("COMES_DATA", "~/data")
    write_pml(home / "data" / "mirflickr.mat", 10433)
    assert len(open_dataset("mirflickr")) == 10433


def test_a_table_of_voc_flags_is_checked(home: Path) -> None:
    (home / "data" / "voc2012-labels.csv").write_text("a,b\n1,2\n")
    (home / "data" / "voc2012-160px-val.zip").touch()
    with refused("cannot be read as a table of VOC's flags: 'split' is missing"):
        open_dataset("VOC2012-160px:val")


def cells(X: np.ndarray) -> np.ndarray:
    """Return the four 8 x 8 cells of every canvas, (n, 4, 64)."""
    return X.reshape(-1, 2, 8, 2, 8).swapaxes(2, 3).reshape(-1, 4, 64)


def handwritten(X: np.ndarray) -> set[bytes]:
    return {cell.tobytes() for cell in cells(X).reshape(-1, 64) if cell.any()}


def test_labels_are_the_digits_on_the_canvas() -> None:
    scenes = make_scenes("train", n=100)
    images, digits = load_digits(return_X_y=True)
    keys = [image.tobytes() for image in (images / 16).astype(np.float32)]
    digit_of = dict(zip(keys, digits, strict=True))
    for canvas, truth in zip(cells(scenes.X), scenes.known_relevant(), strict=True):
        shown = {digit_of[cell.tobytes()] for cell in canvas if cell.any()}
        assert shown == set(np.flatnonzero(truth))


def test_the_seed_decides_and_there_are_one_to_four_digits() -> None:
    first, again, other = (make_scenes("train", n=100, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.X, again.X)
    assert (first.X != other.X).any()
    n_digits = cells(first.X).any(axis=2).sum(axis=1)
    assert set(n_digits) == {1, 2, 3, 4}


def test_training_and_test_scenes_share_no_handwritten_digit() -> None:
    scenes = make_scenes("train")
    assert scenes.X.shape == (5000, 256)  # by default
    train, test = handwritten(scenes.X), handwritten(make_scenes("test", n=1000).X)
    assert len(train) > 1000 and len(test) > 500
    assert not train & test
