"""Jobs that train: fit a model, or choose one on candidates and fit that."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sklearn.base import clone

from comes.datasets import Dataset, Images, ReadOptions
from comes.errors import ComesError
from comes.estimator import CandidateClassifier
from comes.estimator.choose import (
    Choice,
    choose_classifier,
    estimate_shared_prior,
    vary_settings,
)
from comes.estimator.inputs import per_label
from comes.estimator.storage import FILES as MODEL_FILES
from comes.files import check_folder_target, refuse_inputs
from comes.flat_settings import from_flat
from comes.images import ImageClassifier
from comes.jobs.answer_use import describe_use
from comes.jobs.clean_rows import read_clean
from comes.jobs.data_jobs import as_dataset, reading_files
from comes.jobs.fitted_models import Classifier
from comes.jobs.given_priors import read_given_priors
from comes.jobs.model_keeping import name_checkpoint, name_partial, save_model, train_and_save
from comes.jobs.prior_advice import advise
from comes.jobs.project_data import with_text_column
from comes.jobs.setting_checks import refuse_settings
from comes.jobs.table_columns import make_encoder, name_item_column, summarise_columns
from comes.priors import ClassPriorEstimate
from comes.tables import Column
from comes.tables.encoder import encode_table
from comes.training import History
from comes.training.processes import leave_processes, process_number

AUTO = "auto"  # a method to be chosen
FINE_TUNING = ("learning_rate", "backbone_learning_rate", "batch_size", "augment")


@dataclass(frozen=True)
class FittedModel:
    """A model, how its training went, and where it was saved.

    Attributes
    ----------
    classifier : CandidateClassifier or ImageClassifier
    dataset : Dataset
        What it was trained on.
    path : Path, or None
        The folder that it was saved to: ``OUTPUT.partial`` if training was interrupted.
    choice : Choice, or None
        How it was chosen, if there was a choice.
    is_leader : bool
        False in a process that only helps with training; it should print nothing.
    advice : str, or None
        What would help most, where class priors are too uncertain; for tables.

    Examples
    --------
    >>> from comes.datasets import make_scenes
    >>> from comes.jobs import generate_candidates
    >>> scenes = generate_candidates(make_scenes(n=300), rate=0.5)
    >>> fitted = fit_model(scenes, {"method": "bce", "epochs": 2})
    >>> fitted.summary()["epochs"], fitted.history.interrupted
    (2, False)
    """

    classifier: Classifier
    dataset: Dataset
    path: Path | None = None
    choice: Choice | None = None
    is_leader: bool = True
    advice: str | None = None

    @property
    def columns(self) -> tuple[Column, ...]:
        """What the columns of a table were taken for; none if all were complete numbers."""
        encoder = getattr(self.classifier, "encoder_", None)
        return () if encoder is None else encoder.columns_

    @property
    def history(self) -> History:
        """How the training went."""
        return self.classifier.history_

    def summary(self, *, with_choice: bool = False) -> dict[str, Any]:
        """Return the main facts by name; if asked, with the table of the choice."""
        history = self.history
        kept = len(history.risk) if history.best_epoch is None else history.best_epoch
        found: dict[str, Any] = {
            "data": str(self.dataset),
            "method": self.classifier.method_.name,
            **summarise_columns(self.columns),
            "used": describe_use(self.classifier, self.dataset.known_answers()),
            "epochs": len(history.risk),
            **({"interrupted": True} if history.interrupted else {}),
            "seconds": round(history.seconds, 2),
            "risk": history.risk[kept - 1],
            "model": None if self.path is None else str(self.path),
        }
        if history.best_epoch is not None:
            found["kept_epoch"] = kept
        if with_choice and self.choice is not None:
            found["compared"] = self.choice.table.to_dict("records")
        if self.advice is not None:
            found["advice"] = self.advice
        return found


def fit_model(
    data: Dataset | str | Path,
    settings: Mapping[str, Any] | None = None,
    *,
    reading: ReadOptions | None = None,
    priors: str | Path | None = None,
    clean: Dataset | str | Path | None = None,
    select: Sequence[str] = (),
    freeze: bool = False,
    embedding: str | None = None,
    output: str | Path | None = None,
    on_choice: Callable[[Choice], None] = lambda choice: None,
) -> FittedModel:
    """Train a classifier of rows or images, depending on the data; save it if asked.

    Ctrl-C keeps the work so far, saved beside the output so that it does not replace a finished
    model. Long trainings keep their state in ``OUTPUT.checkpoint``, from which the same call goes
    on. Processes that torchrun started train together, and the first one saves the model.

    Parameters
    ----------
    data : Dataset, path or name
        Must have answers or candidates. Or the folder of an annotation project.
    settings : mapping, optional
        Parameters of `comes.CandidateClassifier`, or of `comes.ImageClassifier` for images. The
        method may be "auto": the best by candidates.
    reading : ReadOptions, optional
        What the columns of a file mean.
    priors : path, optional
        A table of class priors, as `estimate_priors` writes it, with standard errors if they are
        estimates, and with what was filled in as known. Those that it leaves open, or all by
        default, are estimated.
    clean : Dataset or path, optional
        A small sample with true labels, which sharpens priors, rates and learned thresholds. Where
        it holds items of the data, what was said about them is compared with the truth.
    select : sequence of str
        What to choose by candidates of rows that training did not see: "method", "lr", "epochs".
    freeze : bool
        Refuse to fine-tune: leave the network of images as it is.
    embedding : str, optional; of texts, as `comes.tables.ColumnEncoder` takes it, else TF-IDF
    output : path, optional
        Folder for the model.
    on_choice : callable (choice) -> None
        Called with what ``select`` found, before the chosen classifier is trained.

    Returns
    -------
    fitted : FittedModel

    Examples
    --------
    >>> import tempfile
    >>> from comes.datasets import make_scenes
    >>> from comes.jobs import generate_candidates
    >>> scenes = generate_candidates(make_scenes(n=300), rate=0.5)
    >>> folder = Path(tempfile.mkdtemp()) / "model"
    >>> fitted = fit_model(scenes, {"method": "bce", "epochs": 2}, output=folder)
    >>> sorted(path.name for path in fitted.path.iterdir())
    ['model.json', 'model.safetensors']
    """
    if output is not None:
        check_folder_target(output, MODEL_FILES)
        check_folder_target(name_partial(output), MODEL_FILES)
        for target in (output, name_partial(output), name_checkpoint(output)):
            refuse_inputs(target, data, priors, clean, *reading_files(reading))
    chosen, varied = dict(settings or {}), list(dict.fromkeys(select))
    if chosen.get("method") == AUTO:
        del chosen["method"]
        varied = list(dict.fromkeys(["method", *varied]))
    reading = with_text_column(data, reading)
    dataset = as_dataset(data, reading)
    if priors is not None:
        chosen["class_prior"] = read_given_priors(priors, dataset, chosen.get("random_state", 0))
    sample = read_clean(dataset, clean, reading)
    if isinstance(dataset.X, Images):
        if sample is not None or embedding is not None:
            what = "clean" if embedding is None else "embedding"
            raise ComesError(f"{what} (--{what}) is for tables, not for images. Leave it out.")
        return _fit_images(dataset, chosen, varied, freeze, output)
    refuse_settings(chosen, ImageClassifier, CandidateClassifier, freeze)
    encoder = make_encoder(dataset, reading, embedding)
    chosen |= {} if encoder is None else {"encoder": encoder}
    classifier, choice = CandidateClassifier(**from_flat(chosen)), None
    if varied:
        classifier, choice = choose_model(dataset, classifier, varied)
        on_choice(choice)
    X, answers = (
        dataset.known_features(),
        dataset.known_answers().rename_labels(dataset.label_names),
    )

    checkpoint = None if output is None else name_checkpoint(output)

    def train() -> None:
        kept: dict[str, Any] = {"checkpoint": checkpoint, "is_shared": True}
        classifier.fit(X, answers=answers, clean=sample, **kept)
        classifier.item_column_ = name_item_column(dataset, reading)

    path, is_leader = train_together(train, classifier, output, checkpoint)
    advice = advise(classifier, X) if is_leader else None
    return FittedModel(classifier, dataset, path, choice, is_leader, advice)


def choose_model(
    data: Dataset | str | Path,
    classifier: CandidateClassifier,
    varied: Sequence[str],
    *,
    reading: ReadOptions | None = None,
) -> tuple[CandidateClassifier, Choice]:
    """Return the variation of a classifier that candidates favour, to be fitted, and why.

    Parameters
    ----------
    data : Dataset, path or name
        Must have features, and candidates or answers.
    classifier : CandidateClassifier
        Its ``class_prior`` is the one that all variations are trained and judged with; where it has
        none, one is estimated. The classifier that is returned has it.
    varied : sequence of str
        "method", "lr" and "epochs": which of them to vary.
    reading : ReadOptions, optional
        What the columns of a file mean.

    Returns
    -------
    classifier : CandidateClassifier
    choice : comes.estimator.Choice

    Examples
    --------
    >>> from comes.datasets import make_scenes
    >>> from comes.jobs import generate_candidates
    >>> scenes = generate_candidates(make_scenes(n=200), rate=0.5)
    >>> start = CandidateClassifier(epochs=10, class_prior=[0.22] * 10, random_state=0)
    >>> best, choice = choose_model(scenes, start, ["epochs"])
    >>> best.epochs in (1, 10), len(choice.table)
    (True, 2)
    """
    dataset = as_dataset(data, reading)
    X, names = dataset.known_features(), dataset.label_names
    given = classifier.encoder or make_encoder(dataset, reading)
    X = encode_table(X) if given is None else given.fit_transform(X)  # once: it sees no label
    answers = dataset.known_answers().rename_labels(names)
    if answers.kind == "positives":
        raise ComesError(
            "choosing (--select, --method auto) compares models on labels that somebody said no "
            "to, and ticked labels have none. Leave it out."
        )
    seed: Any = classifier.random_state
    prior: Any = classifier.class_prior
    if prior is None:
        prior = estimate_shared_prior(X, answers, seed)
    elif not isinstance(prior, ClassPriorEstimate):  # which has the order of the labels
        prior = per_label(prior, "class_prior", names)
    plain = clone(classifier).set_params(encoder=None)  # equal ones can be trained as one
    choice = choose_classifier(
        vary_settings(plain, varied, answers),
        X,
        answers,
        prior,
        extend=True,
        seed=seed,
    )
    return choice.classifier.set_params(class_prior=prior, encoder=classifier.encoder), choice


def _fit_images(
    dataset: Dataset,
    settings: dict[str, Any],
    varied: Sequence[str],
    freeze: bool,
    output: str | Path | None,
) -> FittedModel:
    """Train a classifier of images, with the other processes if there are any."""
    if varied:
        raise ComesError(
            "choosing (--select, --method auto) is for tables, not for images. Leave it out."
        )
    refuse_settings(settings, CandidateClassifier, ImageClassifier, False)
    epochs = settings.get("epochs", 0)
    if freeze and epochs:
        raise ComesError(
            f"freeze (--freeze) leaves the network as it is, and {epochs} epochs (--epochs) train "
            "it. Leave one of the two out."
        )
    unused = [name for name in FINE_TUNING if name in settings and not epochs]
    if unused:
        raise ComesError(
            f"{unused[0]} is for fine-tuning: say for how many epochs (--epochs), or leave it out."
        )
    checkpoint = None if output is None or not epochs else name_checkpoint(output)
    classifier = ImageClassifier(**from_flat(settings))
    answers = dataset.known_answers().rename_labels(dataset.label_names)

    def train() -> None:
        classifier.fit(dataset.X, answers=answers, checkpoint=checkpoint)

    path, is_leader = train_together(train, classifier, output, checkpoint)
    return FittedModel(classifier, dataset, path, is_leader=is_leader)


def train_together(
    train: Callable[[], None],
    classifier: Classifier,
    output: str | Path | None,
    checkpoint: Path | None,
) -> tuple[Path | None, bool]:
    """Train, with the other processes if there are any; return where the first saved the model."""
    is_leader = True

    def train_and_leave() -> None:
        nonlocal is_leader
        train()
        is_leader = process_number() == 0  # known once the processes have met, in fit
        leave_processes()

    def save() -> Path | None:
        return save_model(classifier, output) if is_leader else None

    path = train_and_save(train_and_leave, save)
    if checkpoint is not None and is_leader and not classifier.history_.interrupted:
        checkpoint.unlink(missing_ok=True)
    return path, is_leader
