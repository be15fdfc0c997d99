"""The jobs that write pages about a model: what it says of images or rows, beside what was said."""

from pathlib import Path

from comes.datasets import Dataset, Reading
from comes.errors import ComesError
from comes.estimator import ImageClassifier
from comes.files import check_folder_target, refuse_inputs
from comes.jobs.data_jobs import reading_files
from comes.jobs.fitted_models import Classifier, as_model, open_for_model, score_dataset
from comes.report import write_examples


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
    refuse_inputs(folder, model, data, *reading_files(reading))
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
