"""COCO json: ``images``, ``annotations``, ``categories``.

A category is relevant where an image has an annotation of it, crowds included. An image without
any annotation may show nothing, or nobody may have looked: by default it is left out, as in most
multi-label work; ``unannotated="keep"`` says that nothing is relevant there.

Where images carry ``neg_category_ids`` (verified absent, as in LVIS), the labels are answers: yes
where a category is annotated, no where it is verified absent, and elsewhere nobody looked.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from comes.answers import Answers
from comes.answers.convert import BoolMatrix
from comes.datasets.dataset import Dataset
from comes.datasets.reading import Reading
from comes.errors import ComesError

Pair = tuple[Any, Any]  # ids of an image and of a category


class _Coco(NamedTuple):
    """What is taken from COCO json."""

    row: dict[Any, int]  # by the id of an image
    column: dict[Any, int]  # by the id of a category
    files: list[str]
    names: list[str]
    annotated: list[Pair]
    verified_absent: list[Pair] | None  # None where no image says what was looked for


def coco_dataset(content: Any, path: Path, reading: Reading) -> Dataset:
    """Return the labels of parsed COCO json; items are the file names of the images.

    Parameters
    ----------
    content : dict
    path : Path
        For messages.
    reading : Reading
        ``unannotated`` applies to COCO.
    """
    coco = _parse_coco(content, path)
    annotated = _mark_pairs(coco.annotated, coco, path)
    if coco.verified_absent is not None:
        absent = _mark_pairs(coco.verified_absent, coco, path)
        _refuse_contradictions(annotated & absent, coco, path)
        return Dataset(None, coco.names, items=coco.files, answers=Answers(absent, annotated))
    dataset = Dataset(None, coco.names, relevant=annotated, items=coco.files)
    if reading.unannotated == "keep":
        return dataset
    if not annotated.any():
        raise ComesError(
            f"no image in {path.name} has an annotation, and such images are left out. If nothing "
            "is relevant there, keep them (--unannotated keep on the command line)."
        )
    return dataset.take(annotated.any(axis=1))


def _refuse_contradictions(both: BoolMatrix, coco: _Coco, path: Path) -> None:
    """Raise if a category is annotated and verified absent in one image."""
    if both.any():
        row, column = (int(place) for place in np.argwhere(both)[0])
        raise ComesError(
            f"{path.name} says yes and no about {int(both.sum())} pairs: {coco.names[column]!r} is "
            f"annotated in {coco.files[row]!r} and among its neg_category_ids. Keep one of them."
        )


def _parse_coco(content: Any, path: Path) -> _Coco:
    """Return the images, the categories, and pairs of their ids, checked."""
    try:
        images, categories = content["images"], content["categories"]
        row = {image["id"]: i for i, image in enumerate(images)}
        column = {category["id"]: j for j, category in enumerate(categories)}
        files = [_find_file_name(image) for image in images]
        names = [str(category["name"]) for category in categories]
        annotated = [(a["image_id"], a["category_id"]) for a in content.get("annotations", [])]
        absent = [(image["id"], c) for image in images for c in image.get("neg_category_ids", ())]
        is_verified = any("neg_category_ids" in image for image in images)
    except (KeyError, TypeError, AttributeError) as error:
        what = f"{error} is missing" if isinstance(error, KeyError) else "it has another form"
        raise ComesError(
            f"{path.name} cannot be read as COCO json, {what}: expected images (id, file_name), "
            "annotations (image_id, category_id) and categories (id, name)."
        ) from None
    if len(row) < len(images) or len(column) < len(categories):
        raise ComesError(
            f"{path.name} repeats the id of an image or a category; every id must be unique."
        )
    if not images or not categories:
        raise ComesError(
            f"{path.name} has {len(images)} images and {len(categories)} categories; expected at "
            "least one of each."
        )
    return _Coco(row, column, files, names, annotated, absent if is_verified else None)


def _mark_pairs(pairs: Sequence[Pair], coco: _Coco, path: Path) -> BoolMatrix:
    """Return the matrix that is True at pairs of an image and a category."""
    marked = np.zeros((len(coco.row), len(coco.column)), dtype=bool)
    try:
        marked[[coco.row[i] for i, _ in pairs], [coco.column[c] for _, c in pairs]] = True
    except (KeyError, TypeError) as unknown:
        raise ComesError(
            f"an annotation in {path.name} names the id {unknown}, which no image or category has."
        ) from None
    return marked


def _find_file_name(image: dict[str, Any]) -> str:
    """Return the name of an image; LVIS has only its address."""
    return str(image["file_name"] if "file_name" in image else image["coco_url"].split("/")[-1])


def load_json(path: Path) -> Any:
    """Return the content of a json file."""
    try:
        with path.open(encoding="utf-8-sig") as file:
            return json.load(file)
    except (ValueError, OSError, RecursionError) as error:
        raise ComesError(f"{path.name} cannot be read as json: {error}.") from None
