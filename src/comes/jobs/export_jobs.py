"""The job that hands a model on to others: an ONNX file."""

import warnings
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from comes.errors import ComesError, ComesWarning
from comes.estimator.export import export_onnx, measure_onnx
from comes.files import check_file_target, refuse_inputs
from comes.images import ImageClassifier
from comes.jobs.fitted_models import Classifier, as_model

LARGEST_DIFFERENCE = 1e-5  # of a probability, by rounding


@dataclass(frozen=True)
class ExportedModel:
    """A model as a file.

    Attributes
    ----------
    path : Path
    input : str
        What the file takes, in words.
    n_labels : int
    difference : float or None
        How far its probabilities are from those of the model, at most, on rows that are drawn;
        None where onnxruntime is not installed.

    Examples
    --------
    >>> ExportedModel(Path("model.onnx"), "features: float32 (n, 4)", 3).n_labels
    3
    """

    path: Path
    input: str
    n_labels: int
    difference: float | None = None

    def summary(self) -> dict[str, Any]:
        """Return the main facts by name."""
        return {
            "file": str(self.path),
            "bytes": self.path.stat().st_size,
            "input": self.input,
            "outputs": f"scores and probabilities: float32 (n, {self.n_labels})",
            "largest difference": "not checked: install onnxruntime"
            if self.difference is None
            else f"{self.difference:.1e} of a probability, on rows that were drawn",
        }


def export_model(model: Classifier | str | Path, output: str | Path) -> ExportedModel:
    """Write a fitted model as an ONNX file: scaling, network and head in one graph.

    The file is run on rows that are drawn, and compared with ``predict_proba``.

    Parameters
    ----------
    model : fitted classifier, or the folder of one
    output : path
        An .onnx file.

    Returns
    -------
    exported : ExportedModel

    Examples
    --------
    >>> import tempfile
    >>> from comes import CandidateClassifier
    >>> model = CandidateClassifier("bce", epochs=1, hidden=4).fit([[0.0], [1.0]], [[0], [1]])
    >>> export_model(model, Path(tempfile.mkdtemp()) / "model.onnx").input
    'features: float32 (n, 1)'
    """
    if Path(output).suffix.lower() != ".onnx":
        raise ComesError(f"{output} should end in .onnx; a model is written there.")
    check_file_target(output)
    refuse_inputs(output, model)
    classifier = as_model(model)
    path = export_onnx(classifier, output)
    if isinstance(classifier, ImageClassifier):
        size = classifier.network_.backbone.preprocessing.size
        taken = f"pixels: uint8 (n, 3, {size}, {size})"
    else:
        encoder = getattr(classifier, "encoder_", None)
        n = classifier.n_features_in_ if encoder is None else encoder.n_features
        encoded = "" if encoder is None else f", encoded from {classifier.n_features_in_} columns"
        taken = f"features: float32 (n, {n}){encoded}"
    difference = _check_file(classifier, path)
    return ExportedModel(path, taken, len(classifier.label_names_), difference)


def _check_file(classifier: Classifier, path: Path) -> float | None:
    """Return how far the file is from the model; warn where that is too much."""
    if find_spec("onnxruntime") is None:
        return None
    difference = measure_onnx(classifier, path)
    if not difference <= LARGEST_DIFFERENCE:
        warnings.warn(
            f"{path} gives probabilities up to {difference:.2g} away from those of the model, more "
            f"than {LARGEST_DIFFERENCE:g}. Half precision on a GPU differs so much; else compare "
            "the two on rows of yours before you rely on the file.",
            ComesWarning,
            stacklevel=3,
        )
    return difference
