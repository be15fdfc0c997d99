"""Use what an extra brings, in the environment that this runs in; no extra: a first model."""

import subprocess
import sys
import urllib.request
from pathlib import Path

import numpy as np


def run(command: str) -> None:
    """Run a command of the shell, which must succeed."""
    print("$", command, flush=True)
    subprocess.run(command, shell=True, check=True)


def try_nothing() -> None:
    """Write the table of the demo, and go from another to predictions."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 2))
    rows = [f"{a:.3f},{b:.3f},{int(a > 0)},{int(b > 0 or a < 0)}" for a, b in X]
    Path("table.csv").write_text("\n".join(["height,width,has_a,has_b", *rows]))
    run("comes demo --table tickets.csv && head -2 tickets.csv")
    run("comes fit table.csv --labels 'has_*' -o model")
    run("comes predict table.csv --model model -o predictions.csv && head -3 predictions.csv")


def try_images() -> None:
    """Train on features of a network of timm, without weights."""
    from comes import ImageClassifier

    images = np.random.default_rng(0).integers(0, 255, size=(12, 64, 64, 3), dtype=np.uint8)
    clf = ImageClassifier(backbone="timm:resnet10t", weights=None, image_size=64)
    clf.set_params(class_prior=[0.3, 0.3], epochs=1).fit(images, np.eye(2)[np.arange(12) % 2])
    print(clf.predict_proba(images).shape)


def try_text() -> None:
    """Train on vectors of texts."""
    texts = [f"{word} number {k}" for k in range(20) for word in ("rain", "goal")]
    rows = [f"{text},{'weather' if 'rain' in text else 'sport'}" for text in texts]
    Path("texts.csv").write_text("\n".join(["body,maybe", *rows]))
    run("comes fit texts.csv --text body --labels maybe --embedding wordllama -o model")


def try_annotate() -> None:
    """Make a project, serve it, and open the page."""
    from comes.annotate import open_project, serve_in_thread

    Path("texts.csv").write_text("item,text\nrain,It rains.\ngoal,They scored.\n")
    Path("classes.txt").write_text("sport\nweather\n")
    run("comes annotate init project --items texts.csv --classes classes.txt --rate 1")
    with serve_in_thread(open_project("project")) as address:
        print(urllib.request.urlopen(address).status)


def try_scale() -> None:
    """Send calls to a cluster of Dask and to one of Ray."""
    from comes.clusters import Cluster

    for backend in ("dask", "ray"):
        print(backend, dict(Cluster(backend).run(len, ["a", "bc"])))


def try_chem() -> None:
    """Compute the fingerprint of a molecule."""
    from comes.datasets.catalogue import morgan_fingerprints

    bits, is_readable = morgan_fingerprints(["CCO", "not a molecule"])
    print(bits.shape, bits.nnz, is_readable.tolist())


def try_onnx() -> None:
    """Write a model as ONNX, and compare the two."""
    from comes import CandidateClassifier
    from comes.estimator import export_onnx
    from comes.estimator.export import measure_onnx

    model = CandidateClassifier("bce", epochs=1).fit([[0.0], [1.0]], [[0], [1]])
    print(measure_onnx(model, export_onnx(model, "model.onnx")))


if __name__ == "__main__":
    globals()[f"try_{sys.argv[1] or 'nothing'}"]()
