"""Train a model on rows, images or a stream, save it, and tell what it used."""

import difflib
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from warnings import warn

import numpy as np
from scipy.special import expit, logit
from sklearn.base import clone

from comes.answers import AnswerRates, Answers, State
from comes.datasets import Dataset, Images, ReadOptions, ShardedDataset, open_shards
from comes.errors import ComesError, ComesWarning
from comes.estimator import CandidateClassifier, skops_files
from comes.estimator.choose import Choice, choose_classifier, estimate_shared_prior, vary_settings
from comes.estimator.inputs import per_label
from comes.estimator.storage import FILES as MODEL_FILES
from comes.files import check_folder_target, deferring_interrupts, refuse_inputs
from comes.flat_settings import OF_METHODS, flat_names, from_flat
from comes.images import ImageClassifier
from comes.methods import DEFAULT, METHODS
from comes.metrics import average_precision
from comes.priors import ClassPriorEstimate
from comes.tables.encoder import encode_table
from comes.training import History
from comes.training.processes import leave_processes, process_number
from comes.workflows.data import (
    as_dataset,
    make_encoder,
    name_item_column,
    reading_files,
    summarise_columns,
    with_text_column,
)
from comes.workflows.predict import Classifier
from comes.workflows.priors import read_clean, read_given_priors

PARTIAL, CHECKPOINT = ".partial", ".checkpoint"  # beside a model, while it is not finished
FINE_TUNING = ("learning_rate", "backbone_learning_rate", "batch_size", "augment")
WIDE = 0.05  # rates of labels that differ by more are shown as a range
WORTH_SAYING = 0.01  # average precision; experiments/fit_checks.py compares it with the truth
N_ROWS, N_DRAWS = 400, 8
SMALLEST_PRIOR = 1e-3
ADVICE = (
    "Knowing how often each label is relevant may help most: write a table with 'comes priors' "
    "(the same file and label options, and -o priors.csv), fill in what you know in its column "
    "known_prior, and pass --priors priors.csv. Or pass a few hundred rows with all their true "
    "labels: --clean FILE."
)


@dataclass(frozen=True)
class FittedModel:
    """A model, what it was trained on, and where it was saved."""

    classifier: Classifier
    dataset: Dataset | ShardedDataset
    path: Path | None = None  # OUTPUT.partial, if training was interrupted
    choice: Choice | None = None  # how it was chosen, if there was a choice

    @property
    def history(self) -> History:
        """How the training went."""
        return self.classifier.history_

    def summary(self) -> dict[str, Any]:
        """Return the main facts by name, and the advice that may help most."""
        classifier, dataset, history = self.classifier, self.dataset, self.history
        found: dict[str, Any] = {"data": str(dataset), "method": classifier.method_.name}
        if isinstance(dataset, Dataset):
            encoder = getattr(classifier, "encoder_", None)
            found |= summarise_columns(() if encoder is None else encoder.columns_)
            found |= describe_use(classifier, dataset.known_answers())
        needs_priors = (
            isinstance(dataset, Dataset)
            and isinstance(classifier, CandidateClassifier)
            and not history.warnings  # else something else is wrong
            and measure_prior_cost(classifier, dataset.known_features()) > WORTH_SAYING
        )
        found |= {
            "epochs": len(history.risk),
            "kept_epoch": history.best_epoch,
            "interrupted": history.interrupted or None,
            "seconds": round(history.seconds, 2),
            "risk": history.risk[(history.best_epoch or len(history.risk)) - 1],
            "model": None if self.path is None else str(self.path),
            "advice": ADVICE if needs_priors else None,
        }
        return {name: fact for name, fact in found.items() if fact is not None}


def fit_model(
    data: Dataset | str | Path,
    settings: Mapping[str, Any] | None = None,
    *,
    reading: ReadOptions | None = None,
    priors: str | Path | None = None,
    clean: Dataset | str | Path | None = None,
    select: Sequence[str] = (),
    embedding: str | None = None,
    stream: bool = False,
    buffer_rows: int = 2**17,
    output: str | Path | None = None,
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
        it holds items of the data, their answers are compared with the truth.
    select : sequence of str
        What to choose by candidates of rows that training did not see: "method", "lr", "epochs".
    embedding : str, optional
        Of texts, as `comes.tables.ColumnEncoder` takes it; by default TF-IDF.
    stream : bool
        Read a folder, file, pattern or address block by block (`comes.datasets.open_shards`). What
        needs all rows at once (priors, clean, select, embedding) is refused.
    buffer_rows : int
        With a stream, about how many rows are mixed; twice as many are in memory.
    output : path, optional
        Folder for the model.

    Returns
    -------
    fitted : FittedModel
        Has classifier, dataset, path (None where nothing was saved), choice, history and
        ``summary()``.

    Examples
    --------
    >>> import tempfile
    >>> from comes.datasets import make_scenes
    >>> scenes, folder = make_scenes(n=300), Path(tempfile.mkdtemp()) / "model"
    >>> data = Dataset(scenes.X, scenes.label_names, scenes.relevant)
    >>> fitted = fit_model(data, {"method": "bce", "epochs": 2}, output=folder)
    >>> fitted.summary()["epochs"], sorted(path.name for path in fitted.path.iterdir())
    (2, ['model.json', 'model.safetensors'])
    """
    targets = []
    if output is not None:
        targets = [Path(f"{Path(output)}{ending}") for ending in ("", PARTIAL, CHECKPOINT)]
        for folder in targets[:2]:
            check_folder_target(folder, MODEL_FILES)
        for target in targets:
            refuse_inputs(target, data, priors, clean, *reading_files(reading))
    checkpoint = targets[-1] if targets else None
    chosen, varied = dict(settings or {}), list(dict.fromkeys(select))
    if chosen.get("method") == "auto":
        del chosen["method"]
        varied = ["method", *(name for name in varied if name != "method")]
    needs_rows = {"clean": clean, "select": varied, "embedding": embedding}
    kept: dict[str, Any] = {"checkpoint": checkpoint, "is_shared": True}
    classifier: Classifier
    dataset: Dataset | ShardedDataset
    choice = None
    if stream:
        without = "needs all rows at once: leave it out, or leave out --stream"
        _refuse_given({"priors": priors, **needs_rows}, without)
        _check_settings(chosen, CandidateClassifier)
        dataset = open_shards(str(data), reading)
        classifier = CandidateClassifier(**from_flat(chosen))
        kept["buffer_rows"] = buffer_rows
        train = partial(classifier.fit_stream, dataset, **kept)
    else:
        dataset = as_dataset(data, reading)
        reading = with_text_column(data, dataset, reading)
        answers = dataset.known_answers().rename_labels(dataset.label_names)
        if priors is not None:
            seed = chosen.get("random_state", 0)
            chosen["class_prior"] = read_given_priors(priors, dataset, seed)
        if isinstance(dataset.X, Images):
            _refuse_given(needs_rows, "is for tables, not for images: leave it out")
            _check_settings(chosen, ImageClassifier)
            unused = [name for name in FINE_TUNING if name in chosen and not chosen.get("epochs")]
            if unused:
                raise ComesError(
                    f"{unused[0]} is for fine-tuning: say for how many epochs (--epochs), or leave "
                    "it out."
                )
            classifier = ImageClassifier(**from_flat(chosen))
            if not classifier.epochs:
                checkpoint = None  # nothing that takes long is trained
            train = partial(classifier.fit, dataset.X, answers=answers, checkpoint=checkpoint)
        else:
            sample = read_clean(dataset, clean, reading)
            _check_settings(chosen, CandidateClassifier, is_method_open="method" in varied)
            encoder = make_encoder(dataset, reading, embedding)
            if encoder is not None:
                chosen["encoder"] = encoder
            classifier = CandidateClassifier(**from_flat(chosen))
            if varied:
                classifier, choice = choose_model(dataset, classifier, varied)
            classifier.item_column_ = name_item_column(dataset, reading)
            kept |= {"answers": answers, "clean": sample}
            train = partial(classifier.fit, dataset.known_features(), **kept)
    path = _train_and_save(train, classifier, targets)
    if path is not None and checkpoint is not None and not classifier.history_.interrupted:
        checkpoint.unlink(missing_ok=True)
    return FittedModel(classifier, dataset, path, choice)


def _refuse_given(options: Mapping[str, Any], why: str) -> None:
    """Raise at the first option that was given."""
    for name, value in options.items():
        if value is not None and value != []:
            title = "choosing (--select, --method auto)" if name == "select" else f"--{name}"
            raise ComesError(f"{title} {why}.")


def _check_settings(
    settings: Mapping[str, Any], kind: type[Any], *, is_method_open: bool = False
) -> None:
    """Raise if a setting is not one of the classifier, or of its method."""
    known, others = (
        flat_names(one().get_params(deep=False)) for one in (CandidateClassifier, ImageClassifier)
    )
    foreign = (
        "It is for images, and the data has none: name their folder (--images), or leave it out."
    )
    if kind is ImageClassifier:
        known, others = others, known
        foreign = "It is for tables, and the data has images: leave it out."
    method = settings.get("method", DEFAULT)
    for name in settings:
        if name not in known:
            hint = f"It has {', '.join(sorted(known))}."
            for near in difflib.get_close_matches(name, sorted(known), n=1):
                hint = f"Did you mean {near!r}?"
            hint = foreign if name in others else hint
            raise ComesError(f"{kind.__name__} has no setting {name!r}. {hint}")
        able = [key for key, one in METHODS.items() if name in one.get_params()]
        if name in OF_METHODS and method in METHODS and method not in able and not is_method_open:
            raise ComesError(f"{name} is for {', '.join(able)}; got method {method}. Leave it out.")


def choose_model(
    dataset: Dataset, classifier: CandidateClassifier, varied: Sequence[str]
) -> tuple[CandidateClassifier, Choice]:
    """Return the variation of a classifier that candidates favour, to be fitted, and why."""
    X, names = dataset.known_features(), dataset.label_names
    encoder = classifier.encoder
    X = encode_table(X) if encoder is None else encoder.fit_transform(X)  # once: it sees no label
    answers = dataset.known_answers().rename_labels(names)
    if answers.kind == "positives":
        raise ComesError(
            "choosing (--select, --method auto) compares models on labels that somebody said no "
            "to, and ticked labels have none. Leave it out."
        )
    seed: Any = classifier.random_state
    prior: Any = classifier.class_prior  # one for all variations
    if prior is None:
        prior = estimate_shared_prior(X, answers, seed)
    elif not isinstance(prior, ClassPriorEstimate):  # which has the order of the labels
        prior = per_label(prior, "class_prior", names)
    plain = clone(classifier).set_params(encoder=None)  # equal ones can be trained as one
    variants = vary_settings(plain, varied, answers)
    choice = choose_classifier(variants, X, answers, prior, extend=True, seed=seed)
    return choice.classifier.set_params(class_prior=prior, encoder=encoder), choice


def _train_and_save(
    train: Callable[[], object], classifier: Classifier, targets: Sequence[Path]
) -> Path | None:
    """Train, with other processes if there are any; return where the first saved the model.

    A signal that comes when the epochs are over waits until the model is saved.
    """
    path = None
    if targets and getattr(classifier, "model", None) == "blend":
        skops_files.import_skops()  # or say what is missing, before anything takes long
    try:
        with deferring_interrupts(at_once=False):
            train()
            is_leader = process_number() == 0  # known once the processes have met, in fit
            leave_processes()
            if not classifier.history_.risk:
                raise KeyboardInterrupt  # before the first epoch: nothing to keep
            if is_leader and targets:
                target = targets[1] if classifier.history_.interrupted else targets[0]
                _save_somewhere(classifier, target)
                path = target
    except KeyboardInterrupt:
        if path is not None:
            warn(
                f"Interrupted when the training was done: the model is saved as {path}.",
                ComesWarning,
                stacklevel=3,
            )
        raise
    return path


def _save_somewhere(classifier: Classifier, path: Path) -> None:
    """Save a model; where that fails, keep it in another folder, and raise."""
    with deferring_interrupts():
        try:
            classifier.save(path)
        except ComesError as error:
            kept = "It could not be saved elsewhere, either, and is lost."
            with suppress(ComesError, OSError):
                place = Path(tempfile.mkdtemp(prefix="comes-")) / path.name
                classifier.save(place)
                kept = f"The trained model was saved as {place}: move it from there."
            raise ComesError(f"{error} {kept}") from None


def describe_use(classifier: Classifier, answers: Answers) -> dict[str, str]:
    """Return which rates of answers a fitted classifier knew, and which answers it did not use."""
    method, given, found = classifier.method_, classifier.rates, {}
    names = ("exclude",) if answers.kind == "candidates" else ("no", "yes")
    said = []
    for name, rate in zip(names, (classifier.no_rate_, classifier.yes_rate_), strict=False):
        if not method.needs_rates or rate is None or not rate.any():
            continue
        origin = "estimated"
        if isinstance(given, AnswerRates) or (given or {}).get(name) is not None:
            origin = "given"
        elif name == "exclude" and classifier.class_prior is not None:
            origin = "from the class prior"
        low, high = rate.min(), rate.max()
        value = f"{low:.2f} to {high:.2f}" if high - low > WIDE else f"{rate.mean():.2f}"
        said.append(f"{name} {value} {origin}")
    if said:
        found["rates"] = ", ".join(said)
    if answers.kind == "answers":
        n_yes, n_maybe = (answers.count_state(s).sum() for s in (State.YES, State.MAYBE))
        hears_yes, uses_maybe = method.accepts_positives, getattr(method, "uses_maybe", True)
        unused = {
            "who was asked": method.uses_only_candidates,
            "yes": n_yes and not hears_yes,
            "maybe": n_maybe and (not uses_maybe or (method.ignores_maybe and n_yes)),
            "what a model chose": answers.chosen is not None and not hears_yes,
        }
        if any(unused.values()):
            found["not_used"] = ", ".join(name for name, is_unused in unused.items() if is_unused)
    return found


def measure_prior_cost(classifier: CandidateClassifier, X: Any, seed: int = 0) -> float:
    """Return the average precision that errors of the class priors may cost, as simulated."""
    prior, error = classifier.class_prior_, classifier.class_prior_error_
    if prior is None or error is None or len(prior) < 2:
        return 0.0
    rng = np.random.default_rng(seed)
    rows = np.sort(rng.permutation(X.shape[0])[:N_ROWS])
    some = X.iloc[rows] if hasattr(X, "iloc") else X[rows]
    scores = np.asarray(classifier.decision_function(some)) - classifier.score_offset_
    unknown = np.sqrt(prior * (1 - prior))  # a label whose error is not known may be anything
    costs = []
    for _ in range(N_DRAWS):
        drawn = prior + np.where(np.isnan(error), unknown, error) * rng.normal(size=len(prior))
        levels = (logit(np.clip(p, SMALLEST_PRIOR, 1 - SMALLEST_PRIOR)) for p in (drawn, prior))
        right = scores + np.subtract(*levels)
        relevant = rng.random(scores.shape) < expit(right)
        costs.append(average_precision(right, relevant) - average_precision(scores, relevant))
    return float(np.mean(costs))
