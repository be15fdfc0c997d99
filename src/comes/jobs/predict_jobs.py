"""Jobs that put items through a model: a table of predictions, a page of examples."""

from pathlib import Path
from typing import Any

import pandas as pd

from comes.datasets import (
    Dataset,
    Reading,
    check_table_name,
    prediction_table,
    read_features,
    read_images,
    write_table,
)
from comes.errors import ComesError
from comes.estimator import ImageClassifier
from comes.files import check_file_target, check_folder_target
from comes.jobs.data_jobs import refuse_input
from comes.jobs.fitted_models import Classifier, as_model, open_for_model, score_dataset
from comes.report import write_examples


def predict_items(
    model: Classifier | str | Path,
    data: Dataset | str | Path,
    output: str | Path | None = None,
    *,
    images: str | Path | None = None,
    skip_broken: bool = False,
) -> pd.DataFrame:
    """Return predicted labels and scores for every row or image; write them if asked.

    Parameters
    ----------
    model : fitted classifier, or the folder of one
    data : Dataset, path or name
        Features, a folder or .zip of images, or a table that names images.
    output : path, optional
        A .csv or .parquet file.
    images : path, optional
        The folder or .zip of the images that a table names.
    skip_broken : bool
        Leave out images that cannot be read, with a warning.

    Returns
    -------
    table : DataFrame
        item (where items have names), predicted, and a column of scores per label.

    Examples
    --------
    >>> from comes import CandidateClassifier
    >>> from comes.datasets import make_scenes
    >>> scenes = make_scenes(n=100)
    >>> model = CandidateClassifier("bce", epochs=1).fit(scenes.X, scenes.relevant)
    >>> list(predict_items(model, scenes).columns[:2])
    ['predicted', 'score:0']
    """
    if output is not None:
        check_table_name(output)
        check_file_target(output)
        refuse_input(output, data)
    classifier = as_model(model)
    X, items = _read_inputs(classifier, data, images, skip_broken)
    scores = classifier.decision_function(X)
    table = prediction_table(scores, classifier.cut_scores(scores), classifier.label_names_, items)
    if output is not None:
        write_table(table, output)
    return table


def show_examples(
    model: Classifier | str | Path,
    data: Dataset | str | Path,
    folder: str | Path,
    *,
    reading: Reading | None = None,
    n_examples: int = 60,
    seed: int = 0,
) -> tuple[Path, int]:
    """Write a page of images with their predictions, what was said, and contradictions.

    Parameters
    ----------
    model : fitted ImageClassifier, or the folder of one
    data : Dataset, path or name
        Must have images.
    folder : path
        Folder for the page.
    reading : Reading, optional
        What the columns of a file mean.
    n_examples : int
        How many images to show at most.
    seed : int

    Returns
    -------
    page : Path
    n_images : int
        Number of images in the data.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from PIL import Image
    >>> from comes.datasets import Images
    >>> from comes.models import ResNet
    >>> home, names = Path(tempfile.mkdtemp()), ["one.png", "two.png"]
    >>> for name in names:
    ...     Image.new("RGB", (32, 32)).save(home / name)
    >>> data = Dataset(Images(home, names), ["sky"], np.array([[True], [False]]))
    >>> model = ImageClassifier(
    ...     backbone=ResNet((1, 1, 1, 1), width=4), weights=None, image_size=32, class_prior=[0.5]
    ... )
    >>> page, n_images = show_examples(model.fit(data.X, data.candidates), data, home / "page")
    >>> page.name, n_images
    ('index.html', 2)
    """
    check_folder_target(folder, ("index.html",))
    classifier = as_model(model)
    if not isinstance(classifier, ImageClassifier):
        raise ComesError("examples are shown for images, and this model was trained on a table.")
    dataset = open_for_model(classifier, data, reading)
    scores = score_dataset(classifier, dataset)
    page = write_examples(
        dataset.known_images(),
        classifier.label_names_,
        classifier.squash_scores(scores),
        classifier.cut_scores(scores),
        folder,
        answers=dataset.answers,
        relevant=dataset.relevant,
        rates={"no": classifier.no_rate_, "yes": classifier.yes_rate_},
        n_examples=n_examples,
        seed=seed,
    )
    return page, len(dataset)


def _read_inputs(
    classifier: Classifier,
    data: Dataset | str | Path,
    images: str | Path | None,
    skip_broken: bool,
) -> tuple[Any, list[str] | None]:
    """Return what the model scores, and the names of the items where there are any."""
    if isinstance(classifier, ImageClassifier):
        pictures = (
            data.known_images()
            if isinstance(data, Dataset)
            else read_images(data, images, skip_broken)
        )
        return pictures, pictures.names
    if images is not None or skip_broken:
        raise ComesError(
            "this model was trained on a table, so the images and what to do with broken ones "
            "(--images, --skip-broken) do not apply. Leave them out."
        )
    if isinstance(data, Dataset):
        return data.known_features(), data.items
    return read_features(data, classifier.feature_names, classifier.n_features_in_)
