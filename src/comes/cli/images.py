"""Images on the command line: training in one or more processes, and data to judge with."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from comes.errors import ComesError

if TYPE_CHECKING:
    from comes.datasets import Dataset
    from comes.estimator import ImageClassifier


OF_FINE_TUNING = ("learning_rate", "backbone_learning_rate", "batch_size", "augment")


def open_with_images(
    data: str, reading: dict[str, Any], classifier: "ImageClassifier"
) -> "Dataset":
    """Return data with images, its labels in the order of the classifier's."""
    from comes.datasets import open_dataset
    from comes.files import expanded

    if expanded(data).is_file() and not reading["images"]:
        raise ComesError(
            f"the model is one of images: name the folder that those of {data} are in (--images)."
        )
    dataset = open_dataset(data, **reading).with_labels(classifier.label_names_)
    dataset.known_images()
    return dataset


def fit_images(
    dataset: "Dataset", output: Path, settings: dict[str, Any], *, freeze: bool
) -> "ImageClassifier | None":
    """Return a fitted classifier, or None in a process that only helps.

    Fine-tuning keeps its state in ``OUTPUT.checkpoint``; the same command goes on from there.
    """
    from comes.estimator import ImageClassifier
    from comes.training import leave_processes, process_number

    if freeze and settings.get("epochs"):
        raise ComesError("--freeze leaves the network as it is, and --epochs trains it: take one.")
    for name in OF_FINE_TUNING:
        if name in settings and not settings.get("epochs"):
            option = name.replace("_", "-")
            raise ComesError(f"--{option} is for fine-tuning: say for how many --epochs.")
    classifier = ImageClassifier(**settings)
    classifier.fit(
        dataset.X,
        dataset.candidates_with_names(),
        checkpoint=checkpoint_of(output) if classifier.epochs else None,
    )
    is_first = process_number() == 0
    leave_processes()
    return classifier if is_first else None


def checkpoint_of(output: Path) -> Path:
    """Return the file that keeps the state of fine-tuning until the model is saved."""
    return Path(f"{output}.checkpoint")
