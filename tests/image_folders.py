"""Small folders in the official layouts of VOC, CUB and COCO."""

from pathlib import Path
from typing import Any

from PIL import Image

from comes.datasets.catalogue import VOC_CLASSES

COCO: dict[str, Any] = {
    "images": [{"id": k, "file_name": f"{k}.jpg"} for k in (7, 9, 4)],
    "categories": [{"id": 1, "name": "person"}, {"id": 90, "name": "toothbrush"}],
    "annotations": [
        {"image_id": 9, "category_id": 90},
        {"image_id": 9, "category_id": 90},
        {"image_id": 4, "category_id": 1},
    ],
}


def save_images(folder: Path, names: list[str]) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (2, 2)).save(folder / name)


def make_voc(folder: Path) -> Path:
    """Three images: a cat; a dog and a difficult cat; nothing but a difficult person."""
    flags = {"cat": (1, 0, -1), "dog": (-1, 1, -1), "person": (-1, -1, 0)}
    lists = folder / "ImageSets" / "Main"
    lists.mkdir(parents=True)
    for name in VOC_CLASSES:
        lines = [f"00000{k} {flag:2d}" for k, flag in enumerate(flags.get(name, (-1,) * 3))]
        (lists / f"{name}_train.txt").write_text("\n".join(lines) + "\n")
    save_images(folder / "JPEGImages", [f"00000{k}.jpg" for k in range(3)])
    return folder


def make_cub(folder: Path) -> Path:
    """Two images and three attributes, with the irregular lines of the published file."""
    home = folder / "CUB_200_2011"
    (home / "attributes").mkdir(parents=True)
    (home / "images.txt").write_text("1 001.A/a.jpg\n2 002.B/b c.jpg\n")
    (home / "train_test_split.txt").write_text("1 1\n2 0\n")
    (folder / "attributes.txt").write_text("1 bill::long\n2 bill::short\n3 wing::blue\n")
    (home / "attributes" / "image_attribute_labels.txt").write_text(
        "1 1 0 3 27.7080\n1 2 1 3 27.7080\n1 3 1 4 1.0\n"
        "2 1 0 1 0  1.509\n2 2 0 4 0 0 2.1\n2 3 1 4 5\n"
    )
    save_images(home / "images", ["001.A/a.jpg", "002.B/b c.jpg"])
    return home
