"""The jobs that write pages about a model: what it says of images or rows, beside what was said."""

from pathlib import Path
from typing import NamedTuple

from comes.datasets import Dataset, ReadOptions
from comes.errors import ComesError
from comes.files import check_folder_target, refuse_inputs
from comes.images import ImageClassifier
from comes.jobs.data_jobs import reading_files
from comes.jobs.fitted_models import Classifier, as_model, open_for_model, score_dataset
from comes.jobs.judge_jobs import judge_scores
from comes.jobs.reported_quality import list_reported
from comes.report import KnownLabels, write_examples, write_row_report


class WrittenPage(NamedTuple):
    """A page about a model, and how much data it is about.

    Examples
    --------
    >>> WrittenPage(Path("page/index.html"), 100, "rows").what
    'rows'
    """

    page: Path
    n_rows: int
    what: str  # rows or images


def report_model(
    model: Classifier | str | Path,
    data: Dataset | str | Path,
    folder: str | Path,
    *,
    reading: ReadOptions | None = None,
    n_examples: int | None = None,
    seed: int = 0,
) -> WrittenPage:
    """Write the page about a model of images (`show_examples`) or of a table (`report_rows`).

    Parameters
    ----------
    model, data, folder, reading, seed
        As in `show_examples`.
    n_examples : int, optional
        How many rows or images to show at most; by default 40 rows or 60 images.

    Returns
    -------
    written : WrittenPage

    Examples
    --------
    >>> import tempfile
    >>> from comes import CandidateClassifier
    >>> from comes.datasets import make_scenes
    >>> scenes = make_scenes(n=100)
    >>> model = CandidateClassifier("bce", epochs=1).fit(scenes.X, scenes.relevant)
    >>> report_model(model, scenes, Path(tempfile.mkdtemp()) / "page", n_examples=8).n_rows
    100
    """
    classifier = as_model(model)
    shows_images = isinstance(classifier, ImageClassifier)
    refuse_inputs(folder, model)
    write = show_examples if shows_images else report_rows
    most = n_examples or (60 if shows_images else 40)
    page, n_rows = write(classifier, data, folder, reading=reading, n_examples=most, seed=seed)
    return WrittenPage(page, n_rows, "images" if shows_images else "rows")


def show_examples(
    model: Classifier | str | Path,
    data: Dataset | str | Path,
    folder: str | Path,
    *,
    reading: ReadOptions | None = None,
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
    reading : ReadOptions, optional
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
    >>> from torch import nn
    >>> home, names = Path(tempfile.mkdtemp()), ["one.png", "two.png"]
    >>> for name in names:
    ...     Image.new("RGB", (32, 32)).save(home / name)
    >>> data = Dataset(Images(home, names), ["sky"], np.array([[True], [False]]))
    >>> model = ImageClassifier(
    ...     backbone=nn.Conv2d(3, 8, 5), weights=None, image_size=32, class_prior=[0.5]
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
        relevant=None if dataset.relevant is None else dataset.known_relevant(),
        rates={"no": classifier.no_rate_, "yes": classifier.yes_rate_},
        n_examples=n_examples,
        seed=seed,
    )
    return page, len(dataset)


def report_rows(
    model: Classifier | str | Path,
    data: Dataset | str | Path,
    folder: str | Path,
    *,
    reading: ReadOptions | None = None,
    priors: str | Path | None = None,
    n_examples: int = 40,
    seed: int = 0,
) -> tuple[Path, int]:
    """Write a page about a model of a table: quality by label, calibration, and rows of the data.

    Parameters
    ----------
    model : fitted CandidateClassifier, or the folder of one
    data : Dataset, path or name
        Rows that training did not see, with true labels, candidates or answers.
    folder : path
        Folder for the page.
    reading : ReadOptions, optional
        What the columns of a file mean.
    priors : path, optional
        A table of class priors for the estimates; by default the model's own.
    n_examples : int
        How many rows to show at most: the most confident, the most doubtful, and some others.
    seed : int
        Of the others.

    Returns
    -------
    page : Path
    n_rows : int

    Examples
    --------
    >>> import tempfile
    >>> from comes import CandidateClassifier
    >>> from comes.datasets import make_scenes
    >>> scenes = make_scenes(n=100)
    >>> model = CandidateClassifier("bce", epochs=1).fit(scenes.X, scenes.relevant)
    >>> page, n_rows = report_rows(model, scenes, Path(tempfile.mkdtemp()) / "page")
    >>> page.name, n_rows
    ('index.html', 100)
    """
    check_folder_target(folder, ("index.html",))
    refuse_inputs(folder, model, data, priors, *reading_files(reading))
    classifier = as_model(model)
    if isinstance(classifier, ImageClassifier):
        raise ComesError("a report of rows is for tables; show_examples is for images.")
    dataset = open_for_model(classifier, data, reading)
    scores = score_dataset(classifier, dataset)
    judged = judge_scores(classifier, dataset, scores, priors=priors)
    probabilities = classifier.squash_scores(scores)
    rates = {"no": classifier.no_rate_, "yes": classifier.yes_rate_}
    relevant = None if dataset.relevant is None else dataset.known_relevant()
    prior = None if classifier.class_prior_ is None else classifier
    page = write_row_report(
        dataset.known_features(),
        classifier.label_names_,
        probabilities,
        classifier.cut_scores(scores),
        folder,
        facts=_list_facts(classifier, dataset, data),
        qualities=list_reported(classifier, dataset, judged, probabilities),
        items=dataset.items,
        known=KnownLabels(dataset.answers, relevant, rates, prior),
        history=classifier.history_,
        n_examples=n_examples,
        seed=seed,
    )
    return page, len(dataset)


def _list_facts(
    classifier: Classifier, dataset: Dataset, data: Dataset | str | Path
) -> dict[str, str]:
    """Return what the page says first."""
    named = {} if isinstance(data, Dataset) else {"file": Path(data).name}
    return {**named, "data": str(dataset), "method": classifier.method_.name}
