"""The job that hands a model on to others: an ONNX file."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from comes.errors import ComesError
from comes.estimator import ImageClassifier, export_onnx
from comes.files import check_file_target, refuse_inputs
from comes.jobs.fitted_models import Classifier, as_model


@dataclass(frozen=True)
class ExportedModel:
    """A model as a file.

    Attributes
    ----------
    path : Path
    input : str
        What the file takes, in words.
    n_labels : int

    Examples
    --------
    >>> ExportedModel(Path("model.onnx"), "features: float32 (n, 4)", 3).n_labels
    3
    """

    path: Path
    input: str
    n_labels: int

    def summary(self) -> dict[str, Any]:
        """Return the main facts by name."""
        return {
            "file": str(self.path),
            "bytes": self.path.stat().st_size,
            "input": self.input,
            "outputs": f"scores and probabilities: float32 (n, {self.n_labels})",
        }


def export_model(model: Classifier | str | Path, output: str | Path) -> ExportedModel:
    """Write a fitted model as an ONNX file: scaling, network and head in one graph.

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
        taken = f"features: float32 (n, {classifier.n_features_in_})"
    return ExportedModel(path, taken, len(classifier.label_names_))
