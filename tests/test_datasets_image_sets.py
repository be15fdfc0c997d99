"""VOC, CUB and COCO in small folders of their official layouts."""

import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from comes.datasets import Reading, read_dataset
from comes.datasets.cub import read_cub
from comes.datasets.voc import CLASSES, read_voc
from comes.errors import ComesWarning
from image_folders import COCO, make_cub, make_voc, save_images
from refusals import refused


def test_voc_difficult_objects_are_irrelevant_unless_asked(tmp_path: Path) -> None:
    folder = make_voc(tmp_path / "VOC2007")
    dataset = read_voc(folder, "train", Reading())
    assert dataset.label_names == CLASSES and dataset.items == [f"00000{k}.jpg" for k in range(3)]
    cat, dog, person = (CLASSES.index(name) for name in ("cat", "dog", "person"))
    assert np.argwhere(dataset.known_relevant()).tolist() == [[0, cat], [1, dog]]
    with_difficult = read_voc(folder, "train", Reading(difficult="relevant")).known_relevant()
    assert np.argwhere(with_difficult).tolist() == [[0, cat], [1, cat], [1, dog], [2, person]]
    assert dataset.X[2].shape == (2, 2, 3)


def test_a_bad_list_of_voc_is_named(tmp_path: Path) -> None:
    cases: list[tuple[str, str]] = [
        ("000000 -1\n000001 -1\n", "boat_train.txt does not list the same images"),
        ("000000 -1\n000000 -1\n000002 1\n", "each image once"),
        ("000000 -1\n000001 7\n000002 1\n", "'000005 -1', each image once at line 2"),
        ("000000\n", "boat_train.txt"),
        ("", "boat_train.txt: expected lines such as"),
    ]
    folder = make_voc(tmp_path / "VOC2007")
    for text, message in cases:
        (folder / "ImageSets" / "Main" / "boat_train.txt").write_text(text)
        with refused(message):
            read_voc(folder, "train", Reading())


def test_cub_attributes_and_official_split(tmp_path: Path) -> None:
    folder = make_cub(tmp_path)
    dataset = read_cub(folder, None, Reading())
    assert dataset.label_names == ["bill::long", "bill::short", "wing::blue"]
    assert dataset.known_relevant().astype(int).tolist() == [[0, 1, 1], [0, 0, 1]]
    assert dataset.items == ["001.A/a.jpg", "002.B/b c.jpg"]
    assert read_cub(folder, "train", Reading()).items == ["001.A/a.jpg"]
    assert read_cub(folder, "test", Reading()).items == ["002.B/b c.jpg"]

    for place in ("CUB_200_2011", "CUB_200_2011/attributes"):
        home = tmp_path / place.replace("/", " ")
        folder = make_cub(home)
        (home / "attributes.txt").rename(home / place / "attributes.txt")
        assert len(read_cub(folder, None, Reading()).label_names) == 3


def test_a_bad_file_of_cub_is_named(tmp_path: Path) -> None:
    cases: list[tuple[str, str | None, str]] = [
        ("images.txt", "1 a.jpg\n3 b.jpg\n", r"line 2 should be '2 NAME'; got \['3', 'b.jpg'\]"),
        ("attributes/image_attribute_labels.txt", "1 1 0 3 2.0\n", "each of 2 images and 3 attrib"),
        ("attributes/image_attribute_labels.txt", "1 x 0 3 2.0\n", "cannot be read"),
        ("train_test_split.txt", "1 1\n", "has 1 lines for 2 images"),
        ("../attributes.txt", None, "attributes.txt is neither in"),
        ("images.txt", None, "images.txt cannot be read"),
    ]
    for k, (file, text, message) in enumerate(cases):
        folder = make_cub(tmp_path / str(k))
        (folder / file).unlink() if text is None else (folder / file).write_text(text)
        with refused(message):
            read_cub(folder, "train", Reading())


def write_json(folder: Path, content: Any) -> Path:
    (folder / "instances.json").write_text(json.dumps(content))
    return folder / "instances.json"


def test_coco_images_without_annotation_are_left_out_unless_asked(tmp_path: Path) -> None:
    path = write_json(tmp_path, COCO)
    dataset = read_dataset(path)
    assert dataset.label_names == ["person", "toothbrush"] and dataset.items == ["9.jpg", "4.jpg"]
    assert dataset.known_relevant().tolist() == [[False, True], [True, False]]
    kept = read_dataset(path, unannotated="keep")
    assert kept.items == ["7.jpg", "9.jpg", "4.jpg"]
    assert not kept.known_relevant()[0].any()
    np.testing.assert_array_equal(
        read_dataset(path, labels_are="candidates").candidates, dataset.relevant
    )


def test_categories_verified_absent_are_answers(tmp_path: Path) -> None:
    """As in LVIS: what is neither annotated nor verified absent was not asked."""
    images = [dict(image) for image in COCO["images"]]
    images[0]["neg_category_ids"], images[1]["neg_category_ids"] = [90], [1]
    dataset = read_dataset(write_json(tmp_path, {**COCO, "images": images}))
    assert dataset.relevant is None and not dataset.from_complementary
    assert dataset.known_answers().codes.tolist() == [[0, 1], [1, 2], [2, 0]]


def test_a_bad_coco_file_is_one_sentence(tmp_path: Path) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"images": None}, "cannot be read as COCO json"),
        ({"categories": [{"id": 1}]}, "'name' is missing"),
        ({"annotations": [{"image_id": 9, "category_id": 3}]}, "the id 3, which no image or categ"),
        (
            {"images": COCO["images"] + COCO["images"][:1]},
            "repeats the id of an image or a category",
        ),
        ({"images": [], "annotations": []}, "0 images and 2 categories"),
        ({"categories": COCO["categories"][:1] * 2}, "repeats the id of an image or a category"),
        ({"categories": [], "annotations": []}, "3 images and 0 categories"),
        ({"annotations": [{"image_id": [9], "category_id": 1}]}, "an annotation in"),
    ]
    for change, message in cases:
        with refused(message):
            read_dataset(write_json(tmp_path, {**COCO, **change}))

    (tmp_path / "cut.json").write_text('{"images": [')
    with refused("cut.json cannot be read as json"):
        read_dataset(tmp_path / "cut.json")
    for content in (3, "text", {"a": 1}):
        with refused("cannot be read as COCO json"):
            read_dataset(write_json(tmp_path, content))


def test_images_of_a_coco_file_from_a_zip(tmp_path: Path) -> None:
    save_images(tmp_path, ["4.jpg", "9.jpg"])
    with zipfile.ZipFile(tmp_path / "val.zip", "w") as archive:
        for name in ("4.jpg", "9.jpg"):
            archive.write(tmp_path / name, f"val2014/{name}")
    dataset = read_dataset(write_json(tmp_path, COCO), images=tmp_path / "val.zip")
    assert dataset.X.names == ["val2014/9.jpg", "val2014/4.jpg"] and dataset.X[0].size
    assert dataset.items == ["9.jpg", "4.jpg"]


def test_broken_images_of_a_set_can_be_skipped(tmp_path: Path) -> None:
    folder = make_voc(tmp_path / "VOC2007")
    (folder / "JPEGImages" / "000001.jpg").write_text("broken")
    with pytest.warns(ComesWarning, match="1 images cannot be read"):
        assert read_voc(folder, "train", Reading(skip_broken=True)).items == [
            "000000.jpg",
            "000002.jpg",
        ]
    folder = make_cub(tmp_path)
    (folder / "images" / "001.A" / "a.jpg").write_text("broken")
    with pytest.warns(ComesWarning, match="1 images cannot be read"):
        assert read_cub(folder, None, Reading(skip_broken=True)).items == ["002.B/b c.jpg"]


def test_a_list_that_is_missing_is_named(tmp_path: Path) -> None:
    folder = make_voc(tmp_path / "VOC2007")
    with refused("aeroplane_val.txt cannot be read"):
        read_voc(folder, "val", Reading())
    folder = make_cub(tmp_path)
    (folder / "images.txt").write_bytes(b"1 \xff\n")
    with refused("images.txt cannot be read"):
        read_cub(folder, None, Reading())


def test_lines_of_cub_are_read_by_their_numbers(tmp_path: Path) -> None:
    folder = make_cub(tmp_path)
    path = folder / "attributes" / "image_attribute_labels.txt"
    lines = path.read_text().splitlines()
    path.write_text("\n".join(reversed(lines)))
    assert read_cub(folder, None, Reading()).known_relevant().astype(int).tolist() == [
        [0, 1, 1],
        [0, 0, 1],
    ]
    for wrong in ("1 1 2 3 1.0", "0 1 1 3 1.0", "1 4 1 3 1.0"):
        path.write_text("\n".join([wrong, *lines[1:]]))
        with refused("should have a line"):
            read_cub(folder, None, Reading())


def test_coco_in_other_views_and_forms(tmp_path: Path) -> None:
    path = write_json(tmp_path, COCO)
    dataset = read_dataset(path, labels_are="complementary")
    np.testing.assert_array_equal(dataset.candidates, ~read_dataset(path).known_relevant())
    for options in ({"labels": ["a"]}, {"item": "b"}, {"words": {"1": "yes"}}):
        with refused("is a COCO file, which names its labels"):
            read_dataset(path, **options)
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(COCO).encode())
    assert len(read_dataset(path)) == 2
    path.write_text("[" * 100_000)
    with refused("cannot be read as json"):
        read_dataset(path)
    without = {k: v for k, v in COCO.items() if k != "annotations"}
    with refused("no image in .* has an annotation.*--unannotated keep"):
        read_dataset(write_json(tmp_path, without))


def test_what_is_annotated_cannot_be_verified_absent(tmp_path: Path) -> None:
    """Nor is the truth known where absence was verified; LVIS names images by their address."""
    images: list[dict[str, Any]]
    images = [{"id": k, "coco_url": f"http://x/val/{k}.jpg"} for k in (7, 9, 4)]
    images[1]["neg_category_ids"] = [90, 1]
    path = write_json(tmp_path, {**COCO, "images": images})
    with refused("yes and no about 1 pairs: 'toothbrush' is .* '9.jpg'"):
        read_dataset(path)
    images[1]["neg_category_ids"] = [1]
    path = write_json(tmp_path, {**COCO, "images": images})
    dataset = read_dataset(path)
    assert dataset.items == ["7.jpg", "9.jpg", "4.jpg"]
    assert dataset.candidates is not None
    assert dataset.candidates.tolist() == [[True, True], [False, True], [True, True]]
    with refused(
        "'unannotated' does not apply to instances.json, whose labels are verified",
    ):
        read_dataset(path, unannotated="keep")
