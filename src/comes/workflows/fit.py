"""Train a model on rows, images or a stream, save it, and tell what it used."""

import difflib
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from warnings import warn

import numpy as np
from scipy.special import expit, logit
from sklearn.base import clone

from comes.answers import AnswerRates, Answers, State
from comes.datasets import Dataset, Images, ReadOptions, ShardedDataset, open_shards
from comes.errors import ComesError, ComesWarning, listed
from comes.estimator import CandidateClassifier
from comes.estimator.choose import Choice, choose_classifier, estimate_shared_prior, vary_settings
from comes.estimator.inputs import per_label
from comes.estimator.storage import FILES as MODEL_FILES
from comes.files import check_folder_target, deferring_interrupts, refuse_inputs
from comes.flat_settings import flat_names, from_flat
from comes.images import ImageClassifier
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

FINE_TUNING = ("learning_rate", "backbone_learning_rate", "batch_size", "augment")
BUFFER_ROWS = 2**17
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
    """A model, what it was trained on, and where it was saved.

    Attributes
    ----------
    classifier : CandidateClassifier or ImageClassifier
    dataset : Dataset or ShardedDataset
    path : Path, or None
        The folder that it was saved to: ``OUTPUT.partial`` if training was interrupted.
    choice : Choice, or None
        How it was chosen, if there was a choice.
    is_leader : bool
        False in a process that only helps with training; it should print nothing.
    advice : str, or None
        What would help most, where class priors are too uncertain; for tables.
    """

    classifier: Classifier
    dataset: Dataset | ShardedDataset
    path: Path | None = None
    choice: Choice | None = None
    is_leader: bool = True
    advice: str | None = None

    @property
    def history(self) -> History:
        """How the training went."""
        return self.classifier.history_

    def summary(self) -> dict[str, Any]:
        """Return the main facts by name."""
        history, encoder = self.history, getattr(self.classifier, "encoder_", None)
        found: dict[str, Any] = {"data": str(self.dataset), "method": self.classifier.method_.name}
        if isinstance(self.dataset, Dataset):
            found |= summarise_columns(() if encoder is None else encoder.columns_)
            found["used"] = describe_use(self.classifier, self.dataset.known_answers())
        found["epochs"] = len(history.risk)
        if history.best_epoch is not None:
            found["kept_epoch"] = history.best_epoch
        if history.interrupted:
            found["interrupted"] = True
        found["seconds"] = round(history.seconds, 2)
        found["risk"] = history.risk[(history.best_epoch or len(history.risk)) - 1]
        found["model"] = None if self.path is None else str(self.path)
        return found if self.advice is None else found | {"advice": self.advice}


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
    buffer_rows: int = BUFFER_ROWS,
    output: str | Path | None = None,
    on_choice: Callable[[Choice], None] | None = None,
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
    on_choice : callable (choice) -> None, optional
        Called with what ``select`` found, before the chosen classifier is trained.

    Returns
    -------
    fitted : FittedModel

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
    checkpoint = None
    if output is not None:
        checkpoint = name_checkpoint(output)
        check_folder_target(output, MODEL_FILES)
        check_folder_target(name_partial(output), MODEL_FILES)
        for target in (output, name_partial(output), checkpoint):
            refuse_inputs(target, data, priors, clean, *reading_files(reading))
    chosen, varied = dict(settings or {}), list(select)
    if chosen.get("method") == "auto":
        del chosen["method"]
        varied = ["method", *varied]
    whole = {"priors": priors, "clean": clean, "select": varied, "embedding": embedding}
    if stream:
        _refuse_given(whole, "needs all rows at once: leave it out, or leave out --stream")
        _check_settings(chosen, CandidateClassifier)
        shards, classifier = open_shards(str(data), reading), make_classifier(chosen)

        def train() -> None:
            reader: dict[str, Any] = {"buffer_rows": buffer_rows, "checkpoint": checkpoint}
            classifier.fit_stream(shards, **reader, is_shared=True)

        path, is_leader = train_and_save(train, classifier, output, checkpoint)
        return FittedModel(classifier, shards, path, is_leader=is_leader)
    reading = with_text_column(data, reading)
    dataset = as_dataset(data, reading)
    if priors is not None:
        chosen["class_prior"] = read_given_priors(priors, dataset, chosen.get("random_state", 0))
    if isinstance(dataset.X, Images):
        _refuse_given(whole | {"priors": None}, "is for tables, not for images: leave it out")
        return _fit_images(dataset, chosen, output, checkpoint)
    sample = read_clean(dataset, clean, reading)
    _check_settings(chosen, CandidateClassifier)
    encoder = make_encoder(dataset, reading, embedding)
    classifier, choice = make_classifier(chosen | ({"encoder": encoder} if encoder else {})), None
    if varied:
        classifier, choice = choose_model(dataset, classifier, list(dict.fromkeys(varied)))
        if on_choice is not None:
            on_choice(choice)
    X = dataset.known_features()
    answers = dataset.known_answers().rename_labels(dataset.label_names)

    def train_on_rows() -> None:
        kept: dict[str, Any] = {"checkpoint": checkpoint, "is_shared": True}
        classifier.fit(X, answers=answers, clean=sample, **kept)
        classifier.item_column_ = name_item_column(dataset, reading)

    path, is_leader = train_and_save(train_on_rows, classifier, output, checkpoint)
    advice = advise(classifier, X) if is_leader else None
    return FittedModel(classifier, dataset, path, choice, is_leader, advice)


def make_classifier(settings: Mapping[str, Any]) -> CandidateClassifier:
    """Return a classifier with settings that name those of its method, too."""
    return CandidateClassifier(**from_flat(dict(settings)))


def _refuse_given(options: Mapping[str, Any], why: str) -> None:
    """Raise at the first option that was given."""
    for name, value in options.items():
        if value is not None and value != []:
            title = "choosing (--select, --method auto)" if name == "select" else f"--{name}"
            raise ComesError(f"{title} {why}.")


def _check_settings(settings: Mapping[str, Any], kind: type[Any]) -> None:
    """Raise if a setting is not one of the classifier, but of the other kind or of neither."""
    kinds: dict[str, type[Any]] = {"tables": CandidateClassifier, "images": ImageClassifier}
    known = {of: flat_names(one().get_params(deep=False)) for of, one in kinds.items()}
    of = "tables" if kind is CandidateClassifier else "images"
    foreign = [name for name in settings if name not in known[of]]
    for name in foreign:
        if not any(name in names for names in known.values()):
            near = difflib.get_close_matches(name, sorted(known[of]), n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise ComesError(f"{kind.__name__} has no setting {name!r}.{hint}")
    if foreign and of == "tables":
        raise ComesError(
            f"settings for images were given ({listed(foreign)}), and the data has no images: name "
            "their folder (--images), or leave the settings out."
        )
    if foreign:
        raise ComesError(
            f"settings for tables were given ({listed(foreign)}), and the data has images. Leave "
            "the settings out."
        )


def _fit_images(
    dataset: Dataset, settings: dict[str, Any], output: str | Path | None, checkpoint: Path | None
) -> FittedModel:
    """Train a classifier of images; without epochs, its network is left as it is."""
    _check_settings(settings, ImageClassifier)
    is_tuned = settings.get("epochs", 0) > 0
    unused = [name for name in FINE_TUNING if name in settings and not is_tuned]
    if unused:
        raise ComesError(
            f"{unused[0]} is for fine-tuning: say for how many epochs (--epochs), or leave it out."
        )
    checkpoint = checkpoint if is_tuned else None
    classifier = ImageClassifier(**from_flat(settings))
    answers = dataset.known_answers().rename_labels(dataset.label_names)

    def train() -> None:
        classifier.fit(dataset.X, answers=answers, checkpoint=checkpoint)

    path, is_leader = train_and_save(train, classifier, output, checkpoint)
    return FittedModel(classifier, dataset, path, is_leader=is_leader)


def choose_model(
    data: Dataset | str | Path,
    classifier: CandidateClassifier,
    varied: Sequence[str],
    *,
    reading: ReadOptions | None = None,
) -> tuple[CandidateClassifier, Choice]:
    """Return the variation of a classifier that candidates favour, to be fitted, and why.

    ``varied`` names what differs: "method", "lr" and "epochs". All variations are trained and
    judged with one class prior: that of the classifier, or an estimate.
    """
    dataset = as_dataset(data, reading)
    X, names = dataset.known_features(), dataset.label_names
    encoder = classifier.encoder or make_encoder(dataset, reading)
    X = encode_table(X) if encoder is None else encoder.fit_transform(X)  # once: it sees no label
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
    variants = vary_settings(plain, varied, answers)
    choice = choose_classifier(variants, X, answers, prior, extend=True, seed=seed)
    return choice.classifier.set_params(class_prior=prior, encoder=classifier.encoder), choice


def name_partial(output: str | Path) -> Path:
    """Return where an unfinished model is saved."""
    return Path(f"{output}.partial")


def name_checkpoint(output: str | Path) -> Path:
    """Return where the state of a long training is kept."""
    return Path(f"{Path(output)}.checkpoint")


def train_and_save(
    train: Callable[[], None],
    classifier: Classifier,
    output: str | Path | None,
    checkpoint: Path | None,
) -> tuple[Path | None, bool]:
    """Train, with other processes if there are any; return where the first saved the model.

    A signal that comes when the epochs are over waits until the model is saved.
    """
    path, is_leader = None, True
    try:
        with deferring_interrupts(at_once=False):
            train()
            is_leader = process_number() == 0  # known once the processes have met, in fit
            leave_processes()
            path = save_model(classifier, output) if is_leader else None
    except KeyboardInterrupt:
        if path is not None:
            warn(
                f"Interrupted when the training was done: the model is saved as {path}.",
                ComesWarning,
                stacklevel=3,
            )
        raise
    if checkpoint is not None and is_leader and not classifier.history_.interrupted:
        checkpoint.unlink(missing_ok=True)
    return path, is_leader


def save_model(classifier: Classifier, output: str | Path | None) -> Path | None:
    """Save a model, beside the output if it is unfinished; where that fails, in another folder."""
    if not classifier.history_.risk:
        raise KeyboardInterrupt  # before the first epoch: nothing to keep
    if output is None:
        return None
    path = name_partial(output) if classifier.history_.interrupted else Path(output)
    with deferring_interrupts():
        try:
            classifier.save(path)
        except ComesError as error:
            kept = "It could not be saved elsewhere, either, and is lost."
            for home in (Path(tempfile.gettempdir()), Path.home(), Path.cwd()):
                try:
                    place = Path(tempfile.mkdtemp(prefix="comes-", dir=home)) / path.name
                    classifier.save(place)
                except (ComesError, OSError):
                    continue
                kept = f"The trained model was saved as {place}: move it from there."
                break
            raise ComesError(f"{error} {kept}") from None
    return path


def describe_use(classifier: Classifier, answers: Answers) -> str:
    """Return what a fitted classifier used of the answers, and which rates of answers it knew."""
    if answers.kind == "candidates":
        used = f"{answers.excluded.sum()} exclusions; who was asked is not known"
    elif answers.kind == "positives":
        used = f"{answers.confirmed.sum()} ticked labels"
    else:
        used = _describe_answers(classifier, answers)
    if not classifier.method_.needs_rates:
        return used
    names = ("exclude",) if answers.kind == "candidates" else ("no", "yes")
    known = (classifier.no_rate_, classifier.yes_rate_)
    for name, rate in zip(names, known, strict=False):
        if rate is not None and rate.any():
            is_wide = rate.max() - rate.min() > WIDE
            shown = f"{rate.min():.2f} to {rate.max():.2f}" if is_wide else f"{rate.mean():.2f}"
            used += f"; {name} rate {shown} {_find_origin(classifier, name)}"
    return used


def _describe_answers(classifier: Classifier, answers: Answers) -> str:
    """Return how many answers there are, of which kind and from whom, and what is not used."""
    method, codes = classifier.method_, _list_codes(answers)
    n_chosen = len(codes) - len(_list_codes(answers.without_chosen()))
    counts = {s.word: int((codes == s).sum()) for s in (State.NO, State.YES, State.MAYBE)}
    kinds = ", ".join(f"{n} {word}" for word, n in counts.items() if n)
    chosen = f"; {n_chosen} chosen by a model" if n_chosen else ""
    n_people = 1 if answers.annotations is None else len(answers.annotations.people)
    people = f" of {n_people} people" if n_people > 1 else ""
    uses_maybe = getattr(method, "uses_maybe", True)
    unused = {
        "who was asked": method.uses_only_candidates,
        "yes": counts["yes"] and not method.accepts_positives,
        "maybe": counts["maybe"] and (not uses_maybe or (method.ignores_maybe and counts["yes"])),
        "what a model chose": n_chosen and not method.accepts_positives,
    }
    names = [name for name, is_unused in unused.items() if is_unused]
    without = f", without {' and '.join(names)}" if names else ""
    return f"{len(codes)} answers ({kinds}{chosen}){people}{without}"


def _list_codes(answers: Answers) -> Any:
    """Return the `State` of every answer, (n_answers,)."""
    if answers.annotations is not None:
        return answers.annotations.code
    return np.asarray(answers.codes[answers.codes != State.NOT_ASKED])


def _find_origin(classifier: Classifier, name: str) -> str:
    """Return where a rate comes from."""
    rates = classifier.rates
    if isinstance(rates, AnswerRates) or (rates or {}).get(name) is not None:
        return "given"
    if name == "exclude" and classifier.class_prior is not None:
        return "from the class prior"
    return "estimated"


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
    unknown = np.sqrt(prior * (1 - prior))  # a label whose error is not known may be anything
    costs = []
    for _ in range(N_DRAWS):
        drawn = prior + np.where(np.isnan(error), unknown, error) * rng.normal(size=len(prior))
        levels = (logit(np.clip(p, SMALLEST_PRIOR, 1 - SMALLEST_PRIOR)) for p in (drawn, prior))
        right = scores + np.subtract(*levels)
        relevant = rng.random(scores.shape) < expit(right)
        costs.append(average_precision(right, relevant) - average_precision(scores, relevant))
    return float(np.mean(costs))
