import os
import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from comes.datasets import Dataset, Images, check_dataset, open_dataset, open_images
from comes.datasets.dataset import join_images
from comes.datasets.images import find_broken
from comes.errors import ComesWarning
from refusals import refused

COLOURS = {"red.png": (255, 0, 0), "sub/blue.png": (0, 0, 255), "grey.png": (9, 9, 9)}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with three images, one of them grey."""
    source = tmp_path / "images"
    for k, (name, colour) in enumerate(COLOURS.items()):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        image = Image.new("RGB", (4 + k, 3), colour)
        (image.convert("L") if name == "grey.png" else image).save(source / name)
    return source


def zipped(folder: Path, inside: str = "") -> Path:
    path = folder.parent / "images.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for name in COLOURS:
            archive.write(folder / name, inside + name)
    return path


def test_images_are_arrays_opened_when_asked_for(folder: Path) -> None:
    for kind in ("folder", "zip", "zip of a folder"):
        source = folder if kind == "folder" else zipped(folder, "top/" if "of" in kind else "")
        images, kept = open_images(source, list(COLOURS))
        assert len(images) == 3 and images.shape == (3,) and kept.tolist() == [0, 1, 2]
        for k, colour in enumerate(COLOURS.values()):
            assert images[k].shape == (3, 4 + k, 3) and images[k].dtype == np.uint8
            assert images[k][0, 0].tolist() == list(colour)
        some = images[np.array([False, True, True])]
        assert isinstance(some, Images) and some[1].shape == (3, 6, 3)
        again = pickle.loads(pickle.dumps(images))
        np.testing.assert_array_equal(again[1], images[1])


def test_a_forked_process_does_not_share_its_place_in_the_archive(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    images, _ = open_images(zipped(folder), list(COLOURS))
    opened: list[Path] = []
    open_archive = zipfile.ZipFile.__init__

    def note(self: zipfile.ZipFile, path: Path, *more: Any) -> None:
        opened.append(path)
        open_archive(self, path, *more)

    monkeypatch.setattr(zipfile.ZipFile, "__init__", note)
    assert images[0].size and images[1].size and len(opened) == 1
    number = os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: number + 1)  # as in a child
    assert images[0].size and images[1].size and len(opened) == 2


def test_a_name_never_leads_outside(folder: Path) -> None:
    (folder.parent / "secret.png").write_bytes((folder / "red.png").read_bytes())
    for name in ("../secret.png", str(folder.parent / "secret.png"), "a/../../secret.png", ""):
        with refused(r"row 1\) is not a name inside the folder"):
            open_images(folder, ["red.png", name])

    for name in ("C:/x.png", "..\\secret.png", ".", "a\0b.png"):
        with refused("is not a name inside the folder"):
            open_images(folder, [name])
    (folder / "folder.png").mkdir()
    for name in ("folder.png", "x" * 300 + ".png"):
        with refused("1 of 1 images are not in images"):
            open_images(folder, [name])
    with refused("gone.zip cannot be read as zip"):
        open_images(folder / "gone.zip", ["a.png"])


def test_missing_and_broken_images_are_named_or_skipped(folder: Path) -> None:
    names = [*COLOURS, "gone.png", "bad.png", "short.png"]
    with refused(r"3 of 6 images are not in images: 'gone.png', 'bad.png'"):
        open_images(folder, names)
    (folder / "bad.png").write_text("no image")
    noise = np.random.default_rng(0).integers(0, 255, (40, 40, 3), dtype=np.uint8)
    Image.fromarray(noise).save(folder / "short.png")
    whole = (folder / "short.png").read_bytes()
    (folder / "short.png").write_bytes(whole[: len(whole) // 2])
    names.remove("gone.png")
    images, _ = open_images(folder, names)
    with refused(r"'bad.png' cannot be read.*--skip-broken"):
        images[3]
    assert find_broken(images) == [3, 4]
    with pytest.warns(ComesWarning, match=r"3 images cannot be read and are left out: 'gone.png'"):
        images, kept = open_images(folder, [*COLOURS, "gone.png", *names[3:]], skip_broken=True)
    assert kept.tolist() == [0, 1, 2] and images.names == list(COLOURS)
    with (
        pytest.warns(ComesWarning, match="1 images"),
        refused("none of the 1 images"),
    ):
        open_images(folder, ["gone.png"], skip_broken=True)


def test_a_broken_archive_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "bad.zip").write_bytes(b"PK\x03\x04")
    with refused("bad.zip cannot be read as zip"):
        open_images(tmp_path / "bad.zip", ["a.png"])
    with refused("neither a folder nor a .zip"):
        open_images(tmp_path / "nowhere", ["a.png"])


def test_a_folder_of_images_with_a_table(folder: Path) -> None:
    table = folder.parent / "labels.csv"
    table.write_text(
        "image,size,maybe\nred.png,1,warm;bright\nsub/blue.png,2,bright\ngrey.png,,warm\n"
    )
    dataset = open_dataset(table, labels=["maybe"], images=folder)
    assert isinstance(dataset.X, Images) and dataset.items == list(COLOURS)
    assert str(dataset) == "3 images, 2 labels, 1.33 candidates per row"
    assert dataset.take([2]).X.names == ["grey.png"]
    with refused("has images, and a matrix of features is needed"):
        dataset.known_features()
    (folder / "sub" / "blue.png").write_text("broken")
    with pytest.warns(ComesWarning, match="1 images cannot be read"):
        dataset = open_dataset(table, labels=["maybe"], images=folder, skip_broken=True)
    assert dataset.items == ["red.png", "grey.png"]
    assert dataset.candidates is not None
    assert dataset.candidates.tolist() == [[True, True], [False, True]]


def test_options_for_images_need_images(folder: Path) -> None:
    table = folder.parent / "labels.csv"
    table.write_text("x,maybe\n1,warm\n")
    with refused("broken images can be skipped where there are images"):
        open_dataset(table, labels=["maybe"], skip_broken=True)
    with refused("images are found by the names of the items"):
        open_dataset(table, labels=["maybe"], images=folder)


def test_the_one_folder_of_an_archive(folder: Path) -> None:
    path = zipped(folder, "top/")
    names = [f"top/{name}" for name in COLOURS]
    assert open_images(path, names)[0].names == names
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("__MACOSX/top/._red.png", "")
        archive.writestr(".DS_Store", "")
    assert open_images(path, list(COLOURS))[0].names == names
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("README", "hello")
    assert open_images(path, names)[0].names == names
    with refused("3 of 3 images are not in"):
        open_images(path, list(COLOURS))


def test_images_as_a_person_sees_them(tmp_path: Path) -> None:
    deep = np.array([[0, 20000], [40000, 65535]], dtype=np.uint16)
    Image.fromarray(deep).save(tmp_path / "deep.png")
    turned = Image.new("RGB", (4, 2), "red")
    exif = turned.getexif()
    exif[0x0112] = 6  # turn by a quarter
    turned.save(tmp_path / "turned.jpg", exif=exif)
    Image.new("P", (2, 2)).save(tmp_path / "palette.png", transparency=0)
    Image.new("CMYK", (2, 2)).save(tmp_path / "ink.jpg")
    Image.new("RGBA", (2, 2)).save(tmp_path / "alpha.png")
    Image.new("F", (2, 2)).save(tmp_path / "float.tiff")
    names = ["deep.png", "turned.jpg", "palette.png", "ink.jpg", "alpha.png", "float.tiff"]
    images, _ = open_images(tmp_path, names)
    assert images[0][:, :, 0].tolist() == [[0, 78], [156, 255]]
    assert images[1].shape == (4, 2, 3)
    assert all(images[k].shape == (2, 2, 3) for k in (2, 3, 4))
    with refused("'float.tiff' cannot be read .pixels of 32 bits"):
        images[5]
    assert images[1:3].names == names[1:3]


def test_damaged_members_of_an_archive_are_named(folder: Path) -> None:
    path = zipped(folder)
    content = path.read_bytes()
    start = content.index(b"\x89PNG") + 30
    path.write_bytes(content[:start] + b"\0\0\0\0" + content[start + 4 :])
    images, _ = open_images(path, list(COLOURS))
    assert find_broken(images) == [0]
    labels = Dataset(None, ["a"], relevant=np.array([[True], [False], [True]]), items=list(COLOURS))
    findings = {found.name: found.number for found in check_dataset(join_images(labels, path))}
    assert findings == {"broken_images": 1}


def test_an_image_too_large_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 1)
    with refused("'red.png' cannot be read"):
        open_images(folder, ["red.png"])[0][0]
