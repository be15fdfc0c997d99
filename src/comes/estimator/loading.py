"""A saved model of either kind."""

from pathlib import Path

from comes.estimator.classifier import CandidateClassifier
from comes.estimator.image_classifier import ImageClassifier
from comes.estimator.storage import read_model


def load_model(path: str | Path) -> CandidateClassifier | ImageClassifier:
    """Read a fitted model of either kind.

    Parameters
    ----------
    path : path
        A folder that ``save`` or ``comes fit`` wrote.

    Returns
    -------
    model : CandidateClassifier or ImageClassifier

    Examples
    --------
    >>> import tempfile
    >>> model = CandidateClassifier("bce", epochs=1, hidden=4).fit([[0.0], [1.0]], [[0], [1]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(f"{folder}/model")
    ...     load_model(f"{folder}/model").method
    'bce'
    """
    description, _ = read_model(path)
    return (ImageClassifier if "images" in description else CandidateClassifier).load(path)
