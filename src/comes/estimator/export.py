"""Fitted models as ONNX: one file with scaling, network and head, which needs no Python to run."""

import copy
import json
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy import sparse
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

import comes
from comes.errors import ComesError, first_line
from comes.files import expanded, replacing_file

OUTPUTS = "scores", "probabilities"


class WholeModel(nn.Module):
    """Everything between the input of a fitted classifier and its scores and probabilities."""

    shift: Tensor | None
    scale: Tensor | None
    offset: Tensor
    slope: Tensor | None
    level: Tensor | None

    def __init__(self, network: nn.Module, classifier: Any):
        super().__init__()
        self.network = copy.deepcopy(network).cpu().eval()
        scaling, calibration = getattr(classifier, "scaling_", None), classifier.calibration_
        parts = {"shift": scaling, "scale": scaling, "slope": calibration, "level": calibration}
        arrays = {name: getattr(part, name, None) for name, part in parts.items()}
        arrays["offset"] = classifier.score_offset_
        for name, values in arrays.items():
            self.register_buffer(name, None if values is None else torch.tensor(np.asarray(values)))

    def forward(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        """Return scores and probabilities, (n, n_labels) each."""
        if self.shift is not None or self.scale is not None:
            inputs = inputs.double()  # to be scaled in this precision
            inputs = inputs if self.shift is None else inputs - self.shift
            inputs = (inputs if self.scale is None else inputs / self.scale).float()
        scores: Tensor = self.network(inputs)
        above = scores - self.offset.float()
        if self.slope is not None and self.level is not None:
            above = above * self.slope.float() + self.level.float()
        return scores, torch.sigmoid(above)


def export_onnx(classifier: Any, path: str | Path) -> Path:
    """Write a fitted model as an ONNX file, which gives what ``predict_proba`` gives.

    The input of a model of images is ``pixels``, uint8 of shape (n, 3, image_size, image_size), in
    red, green and blue: stretch pictures to that size, and leave normalising to the file. That of a
    model of tables is ``features``, float32 of shape (n, n_features), not scaled. The number of
    rows is free. The outputs are ``scores`` and ``probabilities``, (n, n_labels). Names of labels,
    thresholds of the scores and more are in the metadata of the file, as json.

    Parameters
    ----------
    classifier : CandidateClassifier or ImageClassifier
        Fitted.
    path : path
        An .onnx file, written whole or not at all.

    Returns
    -------
    path : Path

    Examples
    --------
    >>> import tempfile
    >>> from comes import CandidateClassifier
    >>> model = CandidateClassifier("bce", epochs=1, hidden=4).fit([[0.0], [1.0]], [[0], [1]])
    >>> export_onnx(model, Path(tempfile.mkdtemp()) / "model.onnx").name
    'model.onnx'
    """
    check_is_fitted(classifier)
    if getattr(classifier, "trees_", None) is not None:
        raise ComesError(
            "a blend has trees, which are not written as ONNX. Fit with model='auto', or save it."
        )
    if classifier.score_power_ is not None:
        raise ComesError(
            "a model of version 1.0.0 with exclude_rate='instance' cannot be written as ONNX. Fit "
            "it again without exclude_rate."
        )
    try:
        import onnx  # noqa: F401
        import onnxscript  # noqa: F401
    except ImportError as error:
        raise ComesError(
            f"writing ONNX needs {error.name}, which is not installed: pip install 'comes[onnx]'."
        ) from None
    generator = torch.Generator().manual_seed(0)
    if hasattr(classifier, "network_"):
        name, network = "pixels", classifier.network_
        size = network.backbone.preprocessing.size
        example = torch.randint(0, 256, (2, 3, size, size), dtype=torch.uint8, generator=generator)
    else:
        name, network = "features", classifier.module_
        example = torch.randn(2, classifier.n_inputs_, generator=generator)
    proto = _trace(WholeModel(network, classifier), name, example)
    del proto.metadata_props[:]
    for key, value in _describe(classifier).items():
        entry = proto.metadata_props.add()
        entry.key, entry.value = key, value if isinstance(value, str) else json.dumps(value)
    with replacing_file(path) as temporary:
        temporary.write_bytes(proto.SerializeToString())
    return expanded(path)


def measure_onnx(classifier: Any, path: str | Path, X: Any = None) -> float:
    """Return how far probabilities of an ONNX file are from `predict_proba` at most, on drawn X."""
    try:
        import onnxruntime
    except ImportError:
        raise ComesError(
            "checking an ONNX file needs onnxruntime, which is not installed: pip install "
            "'comes[onnx]'."
        ) from None
    check_is_fitted(classifier)
    session = onnxruntime.InferenceSession(expanded(path), providers=["CPUExecutionProvider"])
    rng = np.random.default_rng(0)
    if hasattr(classifier, "network_"):
        size = classifier.network_.backbone.preprocessing.size
        pixels = rng.integers(0, 256, (4, size, size, 3), dtype=np.uint8) if X is None else X
        inputs = np.ascontiguousarray(np.asarray(pixels).transpose(0, 3, 1, 2))
        expected = classifier.predict_proba(pixels)
    else:
        if X is None:  # scattered as the training rows were
            scaling, X = classifier.scaling_, rng.normal(size=(64, classifier.n_inputs_))
            X = X if scaling.scale is None else X * scaling.scale
            X = X if scaling.shift is None else X + scaling.shift
        inputs = (X.toarray() if sparse.issparse(X) else np.asarray(X)).astype(np.float32)
        expected = classifier.squash_scores(classifier._score_matrix(inputs))
    (probabilities,) = session.run(["probabilities"], {session.get_inputs()[0].name: inputs})
    return float(np.abs(probabilities - expected).max())


def _trace(whole: WholeModel, name: str, example: Tensor) -> Any:
    """Return the model as an ONNX graph: by torch's exporter, else by its older one."""
    import onnx

    names: dict[str, Any] = {"input_names": [name], "output_names": list(OUTPUTS)}
    rows = torch.export.Dim("n", min=1)
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")  # of what changes in torch and its exporter
        try:
            program = torch.onnx.export(
                whole, (example,), dynamo=True, dynamic_shapes=({0: rows},), verbose=False, **names
            )
            assert program is not None
            return program.model_proto
        except Exception:  # some networks cannot be traced so; which, torch does not say
            pass
        free = {key: {0: "n"} for key in (name, *OUTPUTS)}
        try:
            with tempfile.TemporaryDirectory() as folder:
                file = str(Path(folder) / "model.onnx")
                torch.onnx.export(whole, (example,), file, dynamo=False, dynamic_axes=free, **names)
                return onnx.load(file)
        except Exception as error:
            raise ComesError(
                f"torch cannot write this network as ONNX ({first_line(error)}). Take another "
                "backbone or model."
            ) from None


def _describe(classifier: Any) -> dict[str, Any]:
    """Return the metadata of the file."""
    is_by_row = classifier.threshold == "minmax"  # such thresholds are not in the file
    metadata: dict[str, Any] = {
        "comes_version": comes.__version__,
        "label_names": classifier.label_names_,
        "threshold": classifier.threshold,
        "thresholds": None if is_by_row else np.asarray(classifier.threshold_, float).tolist(),
        "method": classifier.method_.name,
    }
    if hasattr(classifier, "network_"):
        how = classifier.network_.backbone.preprocessing
        cut = "stretched" if how.short_side is None else "short side resized, centre cut out"
        return metadata | {
            "image_size": how.size,
            "interpolation": how.interpolation,
            "short_side": how.short_side,  # None: the whole picture is stretched
            "input": "pixels: uint8, (n, 3, image_size, image_size), RGB, upright, not normalised; "
            + cut,
        }
    encoder, names = getattr(classifier, "encoder_", None), classifier.feature_names
    return metadata | {
        "feature_names": names if encoder is None else encoder.get_feature_names_out().tolist(),
        "input": "features: float32, (n, n_features), not scaled",
    }
