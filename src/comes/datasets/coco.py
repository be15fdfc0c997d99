"""COCO json: ``images``, ``annotations``, ``categories``.

A category is relevant where an image has an annotation of it, crowds included. An image without
any annotation may show nothing, or nobody may have looked: by default it is left out, as in most
multi-label work; ``unannotated="keep"`` says that nothing is relevant there.

Where images carry ``neg_category_ids`` (verified absent, as in LVIS), these are complementary
labels: nothing else is excluded, and the truth is not known.
"""

import json
from pathlib import Path
from typing import Any, Literal

import numpy as np

from comes.datasets.dataset import Dataset
from comes.errors import ComesError

Unannotated = Literal["drop", "keep"]


def coco_dataset(content: Any, path: Path, unannotated: Unannotated = "drop") -> Dataset:
    """Return the labels of parsed COCO json; items are the file names of the images.

    Parameters
    ----------
    content : dict
    path : Path
        For messages.
    unannotated : {"drop", "keep"}
        What to do with images that have no annotation.
    """
    try:
        images, categories = content["images"], content["categories"]
        column = {category["id"]: j for j, category in enumerate(categories)}
        row = {image["id"]: i for i, image in enumerate(images)}
        files = [_file_name(image) for image in images]
        names = [str(category["name"]) for category in categories]
        pairs = [(a["image_id"], a["category_id"]) for a in content.get("annotations", [])]
        negatives = [
            (image["id"], c) for image in images for c in image.get("neg_category_ids", ())
        ]
    except (KeyError, TypeError, AttributeError) as error:
        what = f"{error} is missing" if isinstance(error, KeyError) else "it has another form"
        raise ComesError(
            f"{path.name} cannot be read as COCO json, {what}: images (id, file_name), annotations "
            "(image_id, category_id) and categories (id, name) were wanted."
        ) from None
    if unannotated not in ("drop", "keep"):
        raise ComesError(f"unannotated must be 'drop' or 'keep'; got {unannotated!r}.")
    if len(row) < len(images) or len(column) < len(categories):
        raise ComesError(
            f"{path.name} has an image id or a category id twice; each should be once."
        )

    def marked(found: list[tuple[Any, Any]]) -> Any:
        matrix = np.zeros((len(images), len(categories)), dtype=bool)
        try:
            matrix[[row[i] for i, _ in found], [column[c] for _, c in found]] = True
        except (KeyError, TypeError) as unknown:
            raise ComesError(
                f"an annotation in {path.name} names the id {unknown}, which no image or category "
                "has."
            ) from None
        return matrix

    if not images or not categories:
        raise ComesError(
            f"{path.name} has {len(images)} images and {len(categories)} categories; at least one "
            "of each was wanted."
        )
    if any("neg_category_ids" in image for image in images):
        excluded = marked(negatives) & ~marked(pairs)
        return Dataset(None, names, ~excluded, items=files, from_complementary=True)
    dataset = Dataset(None, names, relevant=marked(pairs), items=files)
    if unannotated == "keep":
        return dataset
    annotated = dataset.known_relevant().any(axis=1)
    if not annotated.any():
        raise ComesError(
            f"no image in {path.name} has an annotation, and such images are left out. If nothing "
            "is relevant there, keep them (--unannotated keep on the command line)."
        )
    return dataset.take(annotated)


def _file_name(image: dict[str, Any]) -> str:
    """Return the name of an image; LVIS has only its address."""
    return str(image["file_name"] if "file_name" in image else image["coco_url"].split("/")[-1])


def load_json(path: Path) -> Any:
    """Return the content of a json file."""
    try:
        with path.open(encoding="utf-8-sig") as file:
            return json.load(file)
    except (ValueError, OSError, RecursionError) as error:
        raise ComesError(f"{path.name} cannot be read as json: {error}.") from None
