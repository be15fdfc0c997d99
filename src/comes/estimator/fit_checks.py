"""What may be wrong with a fit, found without a true label and said before the model is used."""

import math
import warnings
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from comes.answers import Answers, State
from comes.errors import ComesError, ComesWarning, listed
from comes.estimator.predictions import PredictsFromScores
from comes.estimator.preparation import Training
from comes.risks.checks import value_or_nan
from comes.training import History
from comes.training.pixels import PixelRows
from comes.training.processes import process_number
from comes.training.seeding import seeded

FloatArray = npt.NDArray[np.floating]

MOST_ROWS, MOST_PICTURES = 2048, 256  # that are looked at
MOST_SCORES = 2**24  # of these rows
FEWEST_ROWS = 20
FEWEST_STEPS = 100  # fewer, where somebody sets the epochs, are meant to be a short training
RAN_AWAY, FAR_AWAY = 100.0, 1e4  # times the risk of scores of 0: upwards, and either way
WORSE = 1.5  # times the risk of constant scores: who is above has run away, too
WORSE_THAN_ZERO = 1.25  # times the risk of scores of 0
FAR_WORSE = 3.0  # the same after very few steps
NO_GAIN = 1e-3  # of the risk of constant scores: who gains less has learned nothing
FLAT = 1e-3  # standard deviation of the scores of a label that do not vary
# Undertrained: in the last third of its steps the risk fell by this part of all it gained, every
# part of the rows still asks for the same change of the weights, and little is learned so far.
# experiments/fit_checks.py has the evidence.
LAST_PART, STEEP, COHERENT, LEARNED = 1 / 3, 0.15, 0.15, 0.8
N_SPLITS = 4
NO_LABEL, FEW_OF_EXPECTED = 0.95, 0.1  # of rows; of the labels that the class prior says
ALL_LABELS, EXPECTED = 0.95, 0.8  # of pairs


class Risks(NamedTuple):
    """The risk of a network on rows that it was trained on, beside that of plainer scores."""

    own: float
    constant: float  # for each label the mean of its scores
    zero: float

    @property
    def gain(self) -> float:
        """What is gained over constant scores."""
        return self.constant - self.own


def check_fit(classifier: PredictsFromScores, training: Training, history: History) -> list[str]:
    """Return what is wrong with a fit, a sentence each."""
    rows = _draw_rows(training)
    if history.interrupted or len(rows) < FEWEST_ROWS:
        return []
    scores = _score_rows(training, rows)
    if _is_meant_short(classifier, training):
        own = training.method.is_custom
        short = None if own else _compare_risks(training, rows, scores)
        return (
            []
            if short is None or short.own < FAR_WORSE * short.zero
            else _say_worse_than_zero(short)
        )
    risks, numbers, answers = _compare_risks(training, rows, scores), scores.cpu(), training.raw[1]
    is_head = training.cross_score is not None  # its steps are fixed, and its weights penalised
    nothing = [] if training.method.is_custom else _say_worse_than_zero(risks)
    nothing = nothing or _say_nothing_learned(risks, is_head)
    if nothing:
        return nothing
    undertrained = [] if is_head else _say_undertrained(training, history, risks)
    flat = _say_flat_labels(classifier, numbers.numpy(), answers)
    return [*undertrained, *flat, *_say_extremes(classifier, numbers.numpy(), answers)]


def _is_meant_short(classifier: PredictsFromScores, training: Training) -> bool:
    """Return whether somebody asked for very few steps, as in a first try or an example."""
    options = training.options
    if training.cross_score is not None:
        return False
    n_steps = options.epochs * math.ceil(len(training.seen) / options.batch_size)
    return getattr(classifier, "epochs", None) is not None and n_steps < FEWEST_STEPS


def warn_of(history: History) -> None:
    """Warn of what was found wrong with a fit."""
    if process_number() == 0:
        for message in history.warnings:
            warnings.warn(message, ComesWarning, stacklevel=3)


def warn_of_many(histories: list[History]) -> None:
    """Warn once of what was found wrong with some of many fits."""
    concerned = [history.warnings for history in histories if history.warnings]
    if concerned:
        warnings.warn(
            f"{len(concerned)} of {len(histories)} fits have warnings (history_.warnings). The "
            f"first: {concerned[0][0]}",
            ComesWarning,
            stacklevel=3,
        )


def _draw_rows(training: Training) -> Tensor:
    """Return the numbers of some rows, in main memory."""
    n, q = training.seen.shape
    most = min(MOST_ROWS, max(FEWEST_ROWS, MOST_SCORES // q))
    if isinstance(training.X, PixelRows):
        most = MOST_PICTURES
    elif training.method.is_over_pairs:  # whose risk is large
        most = 2 * training.options.batch_size
    order = torch.randperm(n, generator=torch.Generator().manual_seed(training.options.seed))
    return order[:most]


def _take_rows(training: Training, rows: Tensor) -> Any:
    """Return rows of the features."""
    X = training.X
    assert not isinstance(X, PixelRows)
    return X[rows.to(X.device)] if isinstance(X, Tensor) else X[rows]


@torch.no_grad()
def _score_rows(training: Training, rows: Tensor) -> Tensor:
    """Return the scores of some rows."""
    training.module.eval()
    if not isinstance(training.X, PixelRows):
        scores: Tensor = training.module(_take_rows(training, rows))
        return scores.float()
    precision, device = training.options.precision, training.X.device.type
    with torch.autocast(device, precision, enabled=precision is not None):
        batches = training.X.batches(rows.split(training.options.part_size or MOST_PICTURES))
        return torch.cat([training.module(batch).float() for batch in batches])


@torch.no_grad()
def _compare_risks(training: Training, rows: Tensor, scores: Tensor) -> Risks:
    """Return the risks of the scores of some rows, of constant ones, and of zeros."""
    seen = training.seen.index_select(0, rows.to(training.seen.device))
    constant = scores.mean(dim=0, keepdim=True).expand_as(scores).contiguous()
    others = (scores, constant, torch.zeros_like(scores))
    return Risks(*(value_or_nan(training.risk, some, seen) for some in others))


def refuse_runaway(training: Training) -> None:
    """Raise an error if the risk is finite, but far above that of a network that knows nothing.

    Above it at all is enough where one score for all rows is as good, as if the network were dead.
    """
    rows = _draw_rows(training)
    risks = _compare_risks(training, rows, _score_rows(training, rows))
    if training.method.is_custom or not risks.zero > 0:
        return
    ratio = risks.own / risks.zero
    is_dead = ratio > WORSE and risks.gain <= NO_GAIN * abs(risks.constant)
    if is_dead or not (ratio <= RAN_AWAY and abs(ratio) <= FAR_AWAY):
        raise ComesError(
            f"the training ran away: the risk is {risks.own:.3g} at its end, and {risks.zero:.3g} "
            "where all scores are 0. Lower the learning rate, or scale the features."
        )


def _say_undertrained(training: Training, history: History, risks: Risks) -> list[str]:
    """Say that the risk was still falling, in a direction that all rows agree on."""
    fall = _measure_fall(history.risk, cosine=training.options.cosine)
    stopped_early = history.best_epoch is not None and history.best_epoch < len(history.risk)
    if isinstance(training.X, PixelRows) or stopped_early or fall <= STEEP * max(risks.gain, 0):
        return []
    is_learned = risks.gain > LEARNED * abs(risks.constant)
    if is_learned or fall <= 0 or measure_coherence(training) <= COHERENT:
        return []
    share = f"{fall / risks.gain:.0%} of" if risks.gain > fall else "more than"
    return [
        "The network is undertrained: the risk was still falling at the end of training (in the "
        f"last third of its steps by {share} all that was gained), in a direction that all rows "
        "agree on. Train for more epochs, with a higher learning rate or with smaller batches."
    ]


def _measure_fall(risk: list[float], *, cosine: bool) -> float:
    """Return by how much the risk fell in the last part of the way that the learning rate allows.

    With a rate that falls to zero the last epochs are flat by construction, so epochs count by
    their rate.
    """
    n = len(risk)
    if n < 3:
        return 0.0
    rate = np.ones(n)
    if cosine:
        rate = 0.5 * (1 + np.cos(math.pi * np.arange(n) / n))
    way = (np.cumsum(rate) - rate / 2) / rate.sum()
    near = np.abs(way - (1 - LAST_PART)) <= max(0.05, np.abs(way - (1 - LAST_PART)).min())
    values = np.asarray(risk)
    return float(values[near].mean() - values[-max(1, n // 30) :].mean())


def measure_coherence(training: Training) -> float:
    """Return how far two halves of the rows agree on how the weights should change: a cosine.

    A network that has learned what it can is torn between its rows: what would help one half hurts
    the other. One that memorises its rows changes for each on its own account.
    """
    rows, module = _draw_rows(training), training.module
    weights = [w for w in module.parameters() if w.requires_grad and w.ndim > 1]
    if not weights:
        return 0.0
    module.eval()
    for part in module.modules():  # what training minimised has dropout, so its gradient has
        if isinstance(part, nn.modules.dropout._DropoutNd):
            part.train()
    with seeded(training.options.seed, training.seen.device):
        found = [_compare_halves(training, weights, rows) for _ in range(N_SPLITS)]
    module.eval()
    return float(np.mean(found))


def _compare_halves(training: Training, weights: list[nn.Parameter], rows: Tensor) -> float:
    """Return the cosine of the gradients of two halves of the rows."""
    halves = rows[torch.randperm(len(rows))].tensor_split(2)
    first, second = (_find_gradient(training, weights, half) for half in halves)
    return float(torch.nn.functional.cosine_similarity(first, second, dim=0))


def _find_gradient(training: Training, weights: list[nn.Parameter], rows: Tensor) -> Tensor:
    """Return the gradient of the risk of some rows, as one vector."""
    seen = training.seen.index_select(0, rows.to(training.seen.device))
    risk = training.risk(training.module(_take_rows(training, rows)), seen)
    of_each = torch.autograd.grad(risk, weights, allow_unused=True)
    return torch.cat([g.to_dense().flatten() for g in of_each if g is not None])


def _say_worse_than_zero(risks: Risks) -> list[str]:
    """Say that the scores are worse than none."""
    if not 0 < WORSE_THAN_ZERO * risks.zero < risks.own:
        return []
    return [
        f"The training ran away: its risk is {risks.own:.3g}, and {risks.zero:.3g} where all "
        "scores are 0. Lower the learning rate, or scale the features."
    ]


def _say_nothing_learned(risks: Risks, is_head: bool) -> list[str]:
    """Say that constant scores would be as good."""
    if risks.gain > NO_GAIN * abs(risks.constant):
        return []
    if risks.own > WORSE * abs(risks.constant):
        return [
            f"The training ran away: its risk is {risks.own:.3g}, where one score per label, the "
            f"same for every row, has {risks.constant:.3g}. Lower the learning rate."
        ]
    remedy = "raise the learning rate, train for more epochs, or scale them"
    if is_head:
        remedy = "collect more answers, or ask for less evidence (standard_errors)"
    return [
        "Nothing was learned: one score per label, the same for every row, fits what was said as "
        f"well as the network does. If the features should tell labels apart, {remedy}."
    ]


def _say_flat_labels(
    classifier: PredictsFromScores, scores: FloatArray, answers: Answers
) -> list[str]:
    """Say which labels have one score for all rows; not those of which nothing is said."""
    flat = scores.std(axis=0) < FLAT
    n_said = answers.count_state(State.NO) + answers.count_state(State.YES)
    flat &= (n_said > 0) & (n_said < len(answers))
    if not flat.any():
        return []
    names = [classifier.label_names_[j] for j in np.flatnonzero(flat)]
    return [
        f"The scores of label {listed(names)} do not vary: nothing was learned about it from the "
        "features. More answers about it, or other features, would help."
    ]


def _say_extremes(
    classifier: PredictsFromScores, scores: FloatArray, answers: Answers
) -> list[str]:
    """Say that nearly nothing, or nearly everything, is predicted."""
    predicted = classifier.cut_scores(scores)
    expected = _find_expected_share(classifier, answers)
    q, empty, share = predicted.shape[1], (~predicted.any(axis=1)).mean(), predicted.mean()
    remedies = (
        "Cut the scores elsewhere (threshold='prior'; --threshold prior on the command line), or "
        "order labels by their probability"
    )
    few = share < FEW_OF_EXPECTED * expected if expected is not None else share == 0
    if empty > NO_LABEL and few:
        wanted = "" if expected is None else f", where {q * expected:.2g} a row are expected"
        return [f"No label is predicted for {empty:.0%} of the training rows{wanted}. {remedies}."]
    many = expected is None or expected < EXPECTED
    if share > ALL_LABELS and many:
        other = ", or take a method that knows the class prior" if expected is None else ""
        return [f"{share:.0%} of all labels are predicted as relevant. {remedies}{other}."]
    return []


def _find_expected_share(classifier: PredictsFromScores, answers: Answers) -> float | None:
    """Return the share of pairs that are relevant, as far as that is known."""
    if classifier.class_prior_ is not None:
        return float(classifier.class_prior_.mean())
    no, yes = (int(answers.count_state(state).sum()) for state in (State.NO, State.YES))
    return float(yes / (no + yes)) if answers.kind == "answers" and no + yes else None
