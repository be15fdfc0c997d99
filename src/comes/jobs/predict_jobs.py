"""Jobs that put items through a model: a table of predictions, pages, what to ask next."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
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
from comes.estimator import ImageClassifier, evidence_maps, lay_over
from comes.files import check_file_target, check_folder_target, expanded
from comes.jobs.data_jobs import refuse_input
from comes.jobs.fitted_models import (
    Classifier,
    as_model,
    find_word_columns,
    open_for_model,
    score_dataset,
)
from comes.jobs.project_data import open_if_project
from comes.jobs.question_jobs import ask_next, read_asked
from comes.report import write_examples, write_predictions


@dataclass(frozen=True)
class PageOptions:
    """A page of predictions to write beside their table; for images.

    Attributes
    ----------
    folder : path
        Folder for the page.
    n_examples : int
        How many pictures to show at most, however many there are.
    maps : bool
        Draw where in a picture the evidence for a label is.
    seed : int
        Of the pictures that are drawn at random.

    Examples
    --------
    >>> PageOptions("page").n_examples
    120
    """

    folder: str | Path
    n_examples: int = 120
    maps: bool = False
    seed: int = 0


@dataclass(frozen=True)
class AskOptions:
    """A table of pairs to ask about next, for ``comes annotate add --cards``.

    Attributes
    ----------
    file : path
        A .csv or .parquet file.
    count : int
        How many pairs at most.
    asked : Dataset or path, optional
        What was said already, by item: these pairs are left out.

    Examples
    --------
    >>> AskOptions("next.csv").count
    200
    """

    file: str | Path
    count: int = 200
    asked: Dataset | str | Path | None = None


@dataclass(frozen=True)
class Predicted:
    """What a model says of items, and what was written beside the table.

    Attributes
    ----------
    table : DataFrame
        item (where items have names), predicted, and a column of scores per label.
    page : Path, or None
    questions : DataFrame, or None
        item, label, probability and bits: what to ask next.

    Examples
    --------
    >>> Predicted(pd.DataFrame({"predicted": ["sky"]})).page is None
    True
    """

    table: pd.DataFrame
    page: Path | None = None
    questions: pd.DataFrame | None = None


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
    return predict_more(model, data, output, images=images, skip_broken=skip_broken).table


def predict_more(
    model: Classifier | str | Path,
    data: Dataset | str | Path,
    output: str | Path | None = None,
    *,
    images: str | Path | None = None,
    skip_broken: bool = False,
    page: PageOptions | None = None,
    ask: AskOptions | None = None,
) -> Predicted:
    """Predict as `predict_items` does; beside the table, write a page, or what to ask next.

    Parameters
    ----------
    model, data, output, images, skip_broken
        As in `predict_items`.
    page : PageOptions, optional
        For images: a page of the most confident, the most doubtful and some other pictures.
    ask : AskOptions, optional
        A table of the pairs whose answers are expected to tell most (`choose_questions` of
        `comes.answers`), for ``comes annotate add --cards``. Items must have names.

    Returns
    -------
    predicted : Predicted

    Examples
    --------
    >>> import tempfile
    >>> from dataclasses import replace
    >>> from comes import CandidateClassifier
    >>> from comes.datasets import make_scenes
    >>> scenes = replace(make_scenes(n=100), items=[f"scene {k}" for k in range(100)])
    >>> model = CandidateClassifier("bce", epochs=1).fit(scenes.X, scenes.relevant)
    >>> ask = AskOptions(Path(tempfile.mkdtemp()) / "next.csv", count=30)
    >>> list(predict_more(model, scenes, ask=ask).questions.columns)
    ['item', 'label', 'probability', 'bits']
    """
    _check_targets(data, output, page, ask)
    classifier = as_model(model)
    if page is not None and not isinstance(classifier, ImageClassifier):
        raise ComesError("a page shows images, and this model was trained on a table.")
    X, items = _read_inputs(classifier, data, images, skip_broken)
    asked = None if ask is None else read_asked(ask.asked, classifier.label_names_, items)
    scores = classifier.decision_function(X)
    predictions = classifier.cut_scores(scores)
    table = prediction_table(scores, predictions, classifier.label_names_, items)
    if output is not None:
        write_table(table, output)
    written = questions = None
    if page is not None:
        written = write_predictions(
            X,
            classifier.label_names_,
            classifier.squash_scores(scores),
            predictions,
            page.folder,
            maps=_make_maps(classifier, X) if page.maps else None,
            n_examples=page.n_examples,
            seed=page.seed,
        )
    if ask is not None:
        assert items is not None
        questions = ask_next(classifier, scores, items, ask.count, asked)
        write_table(questions, ask.file)
    return Predicted(table, written, questions)


def _check_targets(
    data: Dataset | str | Path,
    output: str | Path | None,
    page: PageOptions | None,
    ask: AskOptions | None,
) -> None:
    """Raise an error, before anything takes long, if something cannot be written."""
    asked = None if ask is None else ask.asked
    for target in (output, None if ask is None else ask.file):
        if target is not None:
            check_table_name(target)
            check_file_target(target)
            refuse_input(target, data, asked)
    if output is not None and ask is not None and expanded(output) == expanded(ask.file):
        raise ComesError(
            f"predictions and questions must go to two files; got {output} for both. Name another "
            "one for either (-o, --ask-next)."
        )
    if page is not None:
        check_folder_target(page.folder, ("index.html",))


def _make_maps(classifier: Classifier, images: Any) -> Any:
    """Return a function of rows and labels to maps of evidence."""
    assert isinstance(classifier, ImageClassifier)

    def find(rows: Sequence[int], labels: Sequence[int]) -> Sequence[npt.NDArray[np.float32]]:
        shown = images[rows]
        return lay_over(classifier, shown, evidence_maps(classifier, shown, labels))

    return find


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
    data = open_if_project(data)
    if isinstance(data, Dataset):
        return data.known_features(), data.items
    return read_features(
        data,
        classifier.feature_names,
        classifier.n_features_in_,
        words=find_word_columns(classifier),
        item=getattr(classifier, "item_column_", None),
    )
