"""Settings of a fit that are not those of its classifier."""

import difflib
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from warnings import warn

import numpy as np
import numpy.typing as npt
from scipy.special import expit, logit
from sklearn.base import clone

from comes.answers import AnswerRates, Answers, State
from comes.datasets import Dataset, Images, ReadOptions, ShardedDataset, open_shards
from comes.errors import ComesError, ComesWarning, listed
from comes.estimator import CandidateClassifier
from comes.estimator.choose import (
    Choice,
    choose_classifier,
    estimate_shared_prior,
    vary_settings,
)
from comes.estimator.inputs import per_label
from comes.estimator.storage import FILES as MODEL_FILES
from comes.files import check_folder_target, deferring_interrupts, refuse_inputs
from comes.flat_settings import flat_names, from_flat
from comes.images import ImageClassifier
from comes.methods import Method
from comes.metrics import average_precision
from comes.priors import ClassPriorEstimate
from comes.tables import Column
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


def refuse_settings(
    settings: Mapping[str, Any], other: type[Any], own: type[Any], freeze: bool
) -> None:
    """Raise if a setting is not one of the classifier, but of the other kind or of neither."""
    known, foreign = (flat_names(kind().get_params(deep=False)) for kind in (own, other))
    for name in settings:
        if name not in known and name not in foreign:
            near = difflib.get_close_matches(name, sorted(known), n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise ComesError(f"{own.__name__} has no setting {name!r}.{hint}")
    names = [name for name in settings if name not in known] + (["freeze"] if freeze else [])
    if not names:
        return
    if own is CandidateClassifier:
        raise ComesError(
            f"settings for images were given ({listed(names)}), and the data has no images: name "
            "their folder (--images), or leave the settings out."
        )
    raise ComesError(
        f"settings for tables were given ({listed(names)}), and the data has images. Leave the "
        "settings out."
    )


def train_and_save(train: Callable[[], object], save: Callable[[], Path | None]) -> Path | None:
    """Train and save; a signal that comes when the epochs are over waits until both are done."""
    path = None
    try:
        with deferring_interrupts(at_once=False):
            train()
            path = save()
    except KeyboardInterrupt:
        if path is not None:
            warn(
                f"Interrupted when the training was done: the model is saved as {path}.",
                ComesWarning,
                stacklevel=3,
            )
        raise
    return path


def save_model(classifier: Classifier, output: str | Path | None) -> Path | None:
    """Save a model, beside the output if it is unfinished, and return the folder."""
    history = classifier.history_
    if not history.risk:
        raise KeyboardInterrupt  # before the first epoch: nothing to keep
    if output is None:
        return None
    path = name_partial(output) if history.interrupted else Path(output)
    keep_model(classifier, path)
    return path


def name_partial(output: str | Path) -> Path:
    """Return where an unfinished model is saved."""
    return Path(f"{output}.partial")


def name_checkpoint(output: str | Path) -> Path:
    """Return where the state of a long training is kept."""
    return Path(f"{Path(output)}.checkpoint")


def keep_model(classifier: Classifier, path: Path) -> None:
    """Save a model; where that fails, save it elsewhere and raise an error that says where."""
    with deferring_interrupts():
        try:
            classifier.save(path)
        except ComesError as error:
            place = _save_elsewhere(classifier, path)
            kept = "It could not be saved elsewhere, either, and is lost."
            if place is not None:
                kept = f"The trained model was saved as {place}: move it from there."
            raise ComesError(f"{error} {kept}") from None


def _save_elsewhere(classifier: Classifier, path: Path) -> Path | None:
    """Return where a model could be saved: among temporary files, at home or here; else None."""
    for home in (Path(tempfile.gettempdir()), Path.home(), Path.cwd()):
        try:
            place = Path(tempfile.mkdtemp(prefix="comes-", dir=home)) / path.name
            classifier.save(place)
        except (ComesError, OSError):
            continue
        return place
    return None


WIDE = 0.05  # rates of labels that differ by more are shown as a range


def describe_use(classifier: Classifier, answers: Answers) -> str:
    """Return what a fitted classifier used of the answers, and which rates of answers it knew."""
    method = classifier.method_
    if answers.kind == "candidates":
        used = f"{answers.excluded.sum()} exclusions; who was asked is not known"
    elif answers.kind == "positives":
        used = f"{answers.confirmed.sum()} ticked labels"
    else:
        used = _describe_answers(classifier, method, answers)
    return "; ".join([used, *(_describe_rates(classifier, answers) if method.needs_rates else ())])


def _describe_answers(classifier: Classifier, method: Method, answers: Answers) -> str:
    """Return how many answers there are, of which kind and from whom, and what is not used."""
    codes = _list_codes(answers)
    n_chosen = len(codes) - len(_list_codes(answers.without_chosen()))
    states = (State.NO, State.YES, State.MAYBE)
    counts = {state.word: int((codes == state).sum()) for state in states}
    kinds = ", ".join(f"{n} {word}" for word, n in counts.items() if n)
    chosen = f"; {n_chosen} chosen by a model" if n_chosen else ""
    n_people = 1 if answers.annotations is None else len(answers.annotations.people)
    people = f" of {n_people} people" if n_people > 1 else ""
    unused = {
        "who was asked": method.uses_only_candidates,
        "yes": counts["yes"] and not method.accepts_positives,
        "maybe": counts["maybe"]
        and (not getattr(method, "uses_maybe", True) or (method.ignores_maybe and counts["yes"])),
        "what a model chose": n_chosen and not method.accepts_positives,
    }
    names = [name for name, is_unused in unused.items() if is_unused]
    without = f", without {' and '.join(names)}" if names else ""
    return f"{len(codes)} answers ({kinds}{chosen}){people}{without}"


def _list_codes(answers: Answers) -> npt.NDArray[np.int8]:
    """Return the `State` of every answer, (n_answers,)."""
    if answers.annotations is not None:
        return answers.annotations.code
    return np.asarray(answers.codes[answers.codes != State.NOT_ASKED])


def _describe_rates(classifier: Classifier, answers: Answers) -> Iterator[str]:
    """Yield the rates of answers that can be given at all."""
    names = ("exclude",) if answers.kind == "candidates" else ("no", "yes")
    known = (classifier.no_rate_, classifier.yes_rate_)
    for name, rate in zip(names, known, strict=False):
        if rate is not None and rate.any():
            yield f"{name} rate {_show_range(rate)} {_find_origin(classifier, name)}"


def _find_origin(classifier: Classifier, name: str) -> str:
    """Return where a rate comes from."""
    given = classifier.rates
    if isinstance(given, AnswerRates) or (given or {}).get(name) is not None:
        return "given"
    if name == "exclude" and classifier.class_prior is not None:
        return "from the class prior"
    return "estimated"


def _show_range(rate: Any) -> str:
    """Return the mean of the rates of labels, or their range where it is wide."""
    lowest, highest = rate.min(), rate.max()
    if highest - lowest > WIDE:
        return f"{lowest:.2f} to {highest:.2f}"
    return f"{rate.mean():.2f}"


WORTH_SAYING = 0.01  # average precision; experiments/fit_checks.py compares it with the truth
N_ROWS, N_DRAWS = 400, 8
SMALLEST_PRIOR = 1e-3
ADVICE = (
    "The class priors are uncertain. If you know some, fill in column known_prior of what "
    "'comes priors -o priors.csv' writes and pass --priors priors.csv; or pass --clean FILE."
)


def advise(classifier: CandidateClassifier, X: Any, seed: int = 0) -> str | None:
    """Return what may help most, or None if something else is wrong or class priors are known."""
    if classifier.history_.warnings:
        return None
    return ADVICE if measure_prior_cost(classifier, X, seed) > WORTH_SAYING else None


def measure_prior_cost(classifier: CandidateClassifier, X: Any, seed: int = 0) -> float:
    """Return the average precision that errors of the class priors may cost, as simulated."""
    prior, error = classifier.class_prior_, classifier.class_prior_error_
    if prior is None or error is None or len(prior) < 2:
        return 0.0
    rng = np.random.default_rng(seed)
    rows = np.sort(rng.permutation(X.shape[0])[:N_ROWS])
    some = X.iloc[rows] if hasattr(X, "iloc") else X[rows]
    scores = np.asarray(classifier.decision_function(some)) - classifier.score_offset_
    return float(np.mean([_draw_cost(scores, prior, error, rng) for _ in range(N_DRAWS)]))


def _draw_cost(
    scores: npt.NDArray[np.floating],
    prior: npt.NDArray[np.float64],
    error: npt.NDArray[np.float64],
    rng: np.random.Generator,
) -> float:
    """Return what scores lose if the class priors are off by one draw of their errors."""
    unknown = np.sqrt(prior * (1 - prior))  # a label whose error is not known may be anything
    drawn = prior + np.where(np.isnan(error), unknown, error) * rng.normal(size=len(prior))
    levels = (logit(np.clip(p, SMALLEST_PRIOR, 1 - SMALLEST_PRIOR)) for p in (drawn, prior))
    right = scores + np.subtract(*levels)
    relevant = rng.random(scores.shape) < expit(right)
    return average_precision(right, relevant) - average_precision(scores, relevant)


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
    >>> from comes.workflows import generate_candidates
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
    >>> from comes.workflows import generate_candidates
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
    >>> from comes.workflows import generate_candidates
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


BUFFER_ROWS = 2**17


@dataclass(frozen=True)
class FittedStream:
    """A classifier that was trained on shards.

    Parameters
    ----------
    classifier : CandidateClassifier
    shards : ShardedDataset
    path : Path, optional
        Where it was saved.
    is_leader : bool
        False in all but the first of several processes.

    Examples
    --------
    >>> from comes.workflows import fit_stream
    >>> fit_stream.__name__  # makes one
    'fit_stream'
    """

    classifier: CandidateClassifier
    shards: ShardedDataset
    path: Path | None = None
    is_leader: bool = True

    @property
    def history(self) -> History:
        """How the training went."""
        history: History = self.classifier.history_
        return history

    def summary(self) -> dict[str, Any]:
        """Return the main facts by name."""
        return {
            "data": str(self.shards),
            "method": self.classifier.method_.name,
            "epochs": len(self.history.risk),
            "interrupted": self.history.interrupted,
            "seconds": round(self.history.seconds, 2),
            "risk": self.history.risk[-1],
            "model": None if self.path is None else str(self.path),
        }


def fit_stream(
    source: str | Path,
    settings: Mapping[str, Any] | None = None,
    *,
    reading: ReadOptions | None = None,
    buffer_rows: int = BUFFER_ROWS,
    output: str | Path | None = None,
    **unused: Any,
) -> FittedStream:
    """Train a classifier on rows in files that are read block by block; save it if asked.

    The state of a long training is kept in ``OUTPUT.checkpoint``, from which the same call goes on,
    also in the middle of an epoch. Processes that torchrun started train together.

    Parameters
    ----------
    source : path
        A folder, a file, a pattern or an address, as `comes.datasets.open_shards` takes it.
    settings : mapping, optional
        Parameters of `comes.CandidateClassifier`.
    reading : ReadOptions, optional
        What the columns mean.
    buffer_rows : int
        About how many rows are mixed; twice as many are in memory.
    output : path, optional
        Folder for the model.
    **unused
        What `fit_model` takes beside these; refused if it is given, as it needs all rows at once.

    Returns
    -------
    fitted : FittedStream

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import pandas as pd
    >>> folder, rng = Path(tempfile.mkdtemp()), np.random.default_rng(0)
    >>> table = pd.DataFrame(rng.normal(size=(300, 2)), columns=["a", "b"])
    >>> table["is_right"] = table["a"] > 0
    >>> table.to_parquet(folder / "part.parquet")
    >>> reading = ReadOptions(labels=["is_right"])
    >>> fitted = fit_stream(folder, {"method": "bce", "epochs": 2}, reading=reading)
    >>> fitted.summary()["data"]
    '300 rows in 1 block of 1 file, 2 features, 1 label, candidates'
    """
    given = [name for name, value in unused.items() if value is not None and value is not False]
    if given:
        raise ComesError(
            f"{given[0]} (--{given[0]}) needs all rows at once, and a stream has some at a time. "
            "Leave it out, or leave out --stream."
        )
    chosen = dict(settings or {})
    refuse_settings(chosen, ImageClassifier, CandidateClassifier, False)
    checkpoint = None
    if output is not None:
        check_folder_target(output, MODEL_FILES)
        check_folder_target(name_partial(output), MODEL_FILES)
        checkpoint = name_checkpoint(output)
    shards, classifier = open_shards(source, reading), CandidateClassifier(**from_flat(chosen))

    def train() -> None:
        classifier.fit_stream(
            shards, buffer_rows=buffer_rows, checkpoint=checkpoint, is_shared=True
        )

    path, is_leader = train_together(train, classifier, output, checkpoint)
    return FittedStream(classifier, shards, path, is_leader)
