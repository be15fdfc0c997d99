"""Jobs that put items through a model: a table of predictions, pages, what to ask next."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from warnings import warn

import numpy as np
import numpy.typing as npt
import pandas as pd

from comes.datasets import Dataset, read_features, read_images
from comes.datasets.predictions import (
    check_prediction_name,
    prediction_table,
    write_prediction_table,
)
from comes.datasets.table import check_ending, write_table
from comes.errors import ComesError, ComesWarning, listed
from comes.files import check_file_target, check_folder_target, refuse_inputs, refuse_same
from comes.images import ImageClassifier, evidence_maps
from comes.images.maps import lay_over
from comes.jobs.fitted_models import Classifier, as_model, find_word_columns
from comes.jobs.project_data import open_if_project
from comes.jobs.question_jobs import ask_next, read_asked
from comes.report import write_predictions


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
        item, predicted (names joined by ";"), and the probability of each label.
    n_labels : int
    page : Path, or None
    questions : DataFrame, or None
        item, label, probability and bits: what to ask next.

    Examples
    --------
    >>> Predicted(pd.DataFrame({"predicted": ["sky"]}), n_labels=1).page is None
    True
    """

    table: pd.DataFrame
    n_labels: int
    page: Path | None = None
    questions: pd.DataFrame | None = None


def predict_items(
    model: Classifier | str | Path,
    data: Dataset | str | Path,
    output: str | Path | None = None,
    *,
    images: str | Path | None = None,
    skip_broken: bool = False,
    item: str | None = None,
    scores: bool = False,
) -> pd.DataFrame:
    """Return predicted labels and probabilities for every row or image; write them if asked.

    Parameters
    ----------
    model : fitted classifier, or the folder of one
    data : Dataset, path or name
        Features, a folder or .zip of images, or a table that names images.
    output : path, optional
        A table (.csv, .parquet and others), or lines of json (.jsonl).
    images : path, optional
        The folder or .zip of the images that a table names.
    skip_broken : bool
        Leave out images that cannot be read, with a warning.
    item : str, optional
        The column of a table that names the items. Without names, items are numbered from 0.
    scores : bool
        Add a column of scores for each label.

    Returns
    -------
    table : DataFrame
        item, predicted (names joined by ";"), and the probability of each label.

    Examples
    --------
    >>> from comes import CandidateClassifier
    >>> from comes.datasets import make_scenes
    >>> scenes = make_scenes(n=100)
    >>> model = CandidateClassifier("bce", epochs=1).fit(scenes.X, scenes.relevant)
    >>> list(predict_items(model, scenes).columns[:3])
    ['item', 'predicted', 'probability:0']
    """
    wanted: dict[str, Any] = {"item": item, "scores": scores}
    return predict_more(model, data, output, images=images, skip_broken=skip_broken, **wanted).table


def predict_more(
    model: Classifier | str | Path,
    data: Dataset | str | Path,
    output: str | Path | None = None,
    *,
    images: str | Path | None = None,
    skip_broken: bool = False,
    item: str | None = None,
    scores: bool = False,
    page: PageOptions | None = None,
    ask: AskOptions | None = None,
) -> Predicted:
    """Predict as `predict_items` does; beside the table, write a page, or what to ask next.

    Parameters
    ----------
    model, data, output, images, skip_broken, item, scores
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
    check_targets((data, images, model), output, page, ask)
    classifier = as_model(model)
    if page is not None and not isinstance(classifier, ImageClassifier):
        raise ComesError("a page shows images, and this model was trained on a table.")
    X, items = read_inputs(classifier, data, images, skip_broken, item)
    warn_of_repeated(items)
    asked = None if ask is None else read_asked(ask.asked, classifier.label_names_, items)
    found = np.asarray(classifier.decision_function(X))
    probabilities, predictions = classifier.squash_scores(found), classifier.cut_scores(found)
    table = prediction_table(
        probabilities,
        predictions,
        classifier.label_names_,
        items,
        scores=found if scores else None,
    )
    if output is not None:
        write_prediction_table(table, output)
    written = questions = None
    if page is not None:
        written = write_predictions(
            X,
            classifier.label_names_,
            probabilities,
            predictions,
            page.folder,
            maps=_make_maps(classifier, X) if page.maps else None,
            n_examples=page.n_examples,
            seed=page.seed,
        )
    if ask is not None:
        assert items is not None
        questions = ask_next(classifier, found, items, ask.count, asked)
        write_table(questions, ask.file)
    return Predicted(table, len(classifier.label_names_), written, questions)


def check_targets(
    inputs: Sequence[object],
    output: str | Path | None,
    page: PageOptions | None = None,
    ask: AskOptions | None = None,
) -> None:
    """Raise an error, before anything takes long, if something cannot be written."""
    asked = None if ask is None else ask.asked
    checks = (check_prediction_name, check_ending)
    for target, check_name in zip((output, None if ask is None else ask.file), checks, strict=True):
        if target is not None:
            check_name(target)
            check_file_target(target)
            refuse_inputs(target, *inputs, asked)
    refuse_same(output, None if ask is None else ask.file)
    if page is not None:
        check_folder_target(page.folder, ("index.html",))
        refuse_inputs(page.folder, *inputs)


def _make_maps(classifier: Classifier, images: Any) -> Any:
    """Return a function of rows and labels to maps of evidence."""
    assert isinstance(classifier, ImageClassifier)

    def find(rows: Sequence[int], labels: Sequence[int]) -> Sequence[npt.NDArray[np.float32]]:
        shown = images[rows]
        return lay_over(classifier, shown, evidence_maps(classifier, shown, labels))

    return find


def read_inputs(
    classifier: Classifier,
    data: Dataset | str | Path,
    images: str | Path | None,
    skip_broken: bool,
    item: str | None,
) -> tuple[Any, list[str] | None]:
    """Return what the model scores, and the names of the items where there are any."""
    if isinstance(classifier, ImageClassifier):
        pictures = (
            data.known_images()
            if isinstance(data, Dataset)
            else read_images(data, images, skip_broken)
        )
        if item is not None:
            raise ComesError("images are named by their files; leave item (--item) out.")
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
        item=item,
        usual_item=getattr(classifier, "item_column_", None),
    )


def warn_of_repeated(items: Sequence[str] | None) -> None:
    """Warn if names of items do not tell which row a prediction is of."""
    names = pd.Series(list(items or ()), dtype=object)
    repeated = names[names.duplicated()]
    if len(repeated):
        shown = listed(list(map(str, repeated.unique())), 3)
        warn(
            f"items should have different names; {shown} occurs more than once, and predictions "
            "cannot be told apart by it. Name another column (--item).",
            ComesWarning,
            stacklevel=2,
        )
