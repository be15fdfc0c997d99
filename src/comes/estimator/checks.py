"""What may be wrong: with labels before a fit, and with its result, found without a true label."""

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from comes.answers import State
from comes.errors import ComesError, listed, warn_user
from comes.methods import DEFAULT, Method
from comes.risks.checks import value_or_nan
from comes.selection import check_ranking_risk
from comes.training import History, predict_scores
from comes.training.label_chunks import LabelChunks
from comes.training.pixels import PixelRows
from comes.training.processes import process_number
from comes.training.seeding import seeded

if TYPE_CHECKING:
    from comes.estimator.base import BaseCandidateClassifier
    from comes.estimator.prepare import Training

FEWEST_ROWS = 20  # with fewer, nobody expects much
FEWEST_ANSWERS = 3  # confident ones of a kind; from fewer, a label cannot be learned
TOO_FEW = "that is too few to learn it from. Ask more about it, or leave it out."

MOST_ROWS, MOST_PICTURES = 2048, 256  # that are looked at
MOST_SCORES = 2**24  # of these rows
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
STEPS = ("optimizer", "learning_rate", "epochs", "batch_size")
LAST_PART, STEEP, COHERENT, LEARNED = 1 / 3, 0.15, 0.15, 0.8
NO_LABEL, FEW_OF_EXPECTED = 0.95, 0.1  # of rows; of the labels that the class prior says
ALL_LABELS, EXPECTED = 0.95, 0.8  # of pairs
OTHER_CUT = (
    "Cut the scores elsewhere (threshold='prior'; --threshold prior on the command line), or order "
    "labels by their probability"
)


def check_labels(answers: Any, method: Method) -> None:
    """Raise an error if nothing can be learned; warn of labels from which little can be."""
    kind = answers.kind
    has_no, has_yes, has_maybe = map(answers.has, (State.NO, State.YES, State.MAYBE))
    if kind == "positives" and not method.accepts_positives:
        raise ComesError(
            f"method {method.name!r} learns from excluded labels, and ticked labels exclude none. "
            f"Take method={DEFAULT!r}."
        )
    if kind != "candidates" and not (has_yes or (kind == "answers" and (has_no or has_maybe))):
        raise ComesError("nothing can be learned: there is no answer about any pair.")
    cases: dict[str, npt.NDArray[np.bool_]] = {}
    if kind == "candidates":
        cases = _find_idle_candidates(answers, method)
    elif kind == "answers":
        if not (has_no or has_yes):
            raise ComesError("nothing can be learned: every answer is 'maybe'.")
        if not method.accepts_positives and not answers.without_chosen().has(State.NO):
            chosen = " to a question drawn at random" if has_no else ""
            raise ComesError(
                f"method {method.name!r} learns from labels that somebody said 'no' to, and no "
                f"answer{chosen} is 'no'. Take method={DEFAULT!r}."
            )
        # A class prior is estimated from who was asked, and from yes.
        if method.uses_only_candidates and not method.needs_class_prior:
            warn_user(
                f"Method {method.name!r} takes candidates only: who was asked, and yes, are not "
                "used."
            )
        cases = _find_idle_answers(answers)
    for message, concerned in cases.items():
        if concerned.any():
            names = [answers.label_names[j] for j in np.flatnonzero(concerned)]
            warn_user(message.format(listed(names)))
    if answers.shape[1] == 1 and (method.is_over_pairs or method.needs_transition):
        warn_user(
            f"This risk needs two labels; with one nothing is learned. Take method={DEFAULT!r}."
        )


def _find_idle_answers(answers: Any) -> dict[str, npt.NDArray[np.bool_]]:
    """Return which labels nobody was asked about, or have answers of one kind, by message."""
    n_no, n_yes, n_maybe = map(answers.count_state, (State.NO, State.YES, State.MAYBE))
    no, yes, maybe = n_no > 0, n_yes > 0, n_maybe > 0
    cases = {
        "Nobody was asked about label {}: nothing is learned about it.": ~(no | yes | maybe),
        "Every answer about label {} is 'maybe': nothing is learned about it.": ~no & ~yes & maybe,
    }
    both = (("yes", "relevant", n_yes, n_no), ("no", "irrelevant", n_no, n_yes))
    for word, learned, n_word, n_other in both:
        message = f"Every sure answer about label {{}} is {word!r}: it is learned as {learned}."
        cases[message] = (n_word > 0) & (n_other == 0) & (n_other > 0).any()
    for word, _, n_word, n_other in both if len(answers) >= FEWEST_ROWS else ():
        message = f"Fewer than {FEWEST_ANSWERS} answers about label {{}} are {word!r}: {TOO_FEW}"
        is_rare = (n_word > 0) & (n_word < FEWEST_ANSWERS)
        cases[message] = is_rare & ((n_other > 0) | ~(n_other > 0).any())
    return cases


def _find_idle_candidates(answers: Any, method: Method) -> dict[str, npt.NDArray[np.bool_]]:
    """Return which labels no row, few rows or every row excludes, by message."""
    never = {
        "relevant": "it is taken for relevant everywhere.",
        "unknown": "nothing shows where it is irrelevant.",
        "left out": "it is left out of the risk, since nothing shows where it is irrelevant, and "
        "its scores mean nothing.",
    }[method.never_excluded]
    if method.is_over_pairs:
        never = "nothing pushes its scores down, and they mean nothing."
    always = "it is learned as irrelevant."
    if method.needs_class_prior:
        always = "it is learned as irrelevant; its class prior is taken as 0."
    elif method.is_custom or method.needs_transition or method.keeps_one_excluded:
        always = "nothing shows where it is relevant."
    n, n_excluded = len(answers), answers.count_state(State.NO)
    rarely = (n_excluded > 0) & (n_excluded < FEWEST_ANSWERS) & (n >= FEWEST_ROWS)
    return {
        f"No row excludes label {{}}: {never}": n_excluded == 0,
        f"Fewer than {FEWEST_ANSWERS} rows exclude label {{}}: {TOO_FEW}": rarely,
        f"Every row excludes label {{}}: {always}": n_excluded == n,
    }


def warn_of(history: History) -> None:
    """Warn of what was wrong with a fit."""
    if process_number() == 0:
        for message in history.warnings:
            warn_user(message)


class FitCheck:
    """The risk of a trained network on some of its training rows, beside those of plain scores."""

    @torch.no_grad()
    def __init__(self, training: "Training") -> None:
        self.training, X, options = training, training.X, training.options
        n, q = training.targets.shape
        most = min(MOST_ROWS, max(FEWEST_ROWS, MOST_SCORES // q))
        if isinstance(X, PixelRows):
            most = MOST_PICTURES
        elif training.method.is_over_pairs:  # whose risk is large
            most = 2 * options.batch_size
        generator = torch.Generator().manual_seed(options.seed)
        self.rows = torch.randperm(n, generator=generator)[:most]  # in main memory
        training.network.eval()
        if isinstance(X, PixelRows):
            precision = options.precision
            with torch.autocast(X.device.type, precision, enabled=precision is not None):
                batches = X.batches(self.rows.split(options.part_size or MOST_PICTURES))
                self.scores = torch.cat([training.network(batch).float() for batch in batches])
        else:
            self.scores = training.network(self._take_rows(self.rows)).float()
        constant = self.scores.mean(dim=0, keepdim=True).expand_as(self.scores).contiguous()
        targets = training.targets.index_select(0, self.rows.to(training.targets.device))
        # Of the network; of the mean score of each label; of zeros.
        self.risk, self.constant, self.zero = (
            value_or_nan(training.risk, scores, targets)
            for scores in (self.scores, constant, torch.zeros_like(self.scores))
        )
        self.gain = self.constant - self.risk

    def _take_rows(self, rows: Tensor) -> Any:
        """Return rows of the features."""
        X = self.training.X
        return X[rows.to(X.device)] if isinstance(X, Tensor) else X[rows]

    def refuse_runaway(self) -> None:
        """Raise an error if the risk is finite, but far above that of a network without knowledge.

        Above it at all is enough where one score for all rows is as good, as if the network were
        dead.
        """
        if self.training.method.is_custom or not self.zero > 0:
            return
        ratio = self.risk / self.zero
        is_dead = ratio > WORSE and self.gain <= NO_GAIN * abs(self.constant)
        if is_dead or not (ratio <= RAN_AWAY and abs(ratio) <= FAR_AWAY):
            raise ComesError(
                f"the training ran away: the risk is {self.risk:.3g} at its end, and "
                f"{self.zero:.3g} where all scores are 0. Lower the learning rate, or scale the "
                "features."
            )

    def find_problems(self, classifier: "BaseCandidateClassifier", history: History) -> list[str]:
        """Return what is wrong with a fit, a sentence each."""
        training, options = self.training, self.training.options
        problems: list[str | None] = []
        if not history.interrupted and len(self.rows) >= FEWEST_ROWS:
            is_head = training.cross_score is not None  # its steps are fixed, its weights penalised
            n_steps = options.epochs * math.ceil(len(training.targets) / options.batch_size)
            is_short = getattr(classifier, "epochs", None) is not None and n_steps < FEWEST_STEPS
            is_example = is_short and not is_head  # somebody asked for very few steps
            problems = [self._find_failure(is_head, is_example)]
            if problems == [None] and not is_example:
                # How long the usual steps are taken is not the user's to mend.
                is_usual = all(getattr(classifier, name, None) is None for name in STEPS)
                skips = is_head or is_usual
                problems = [None if skips else self._find_undertrained(history)]
                problems += [self._find_flat_labels(classifier)]
                extreme = self._find_extremes(classifier)
                problems += [extreme or self._find_never_predicted(classifier)]
        problems.append(self._find_impossible_risk(classifier))
        return [problem for problem in problems if problem is not None]

    def _find_failure(self, is_head: bool, is_example: bool) -> str | None:
        """Return that scores of 0, or constant ones, would be as good."""
        least = FAR_WORSE if is_example else 0.0
        is_worse = 0 < WORSE_THAN_ZERO * self.zero < self.risk and self.risk >= least * self.zero
        if is_worse and not self.training.method.is_custom:
            return (
                f"The training ran away: its risk is {self.risk:.3g}, and {self.zero:.3g} where "
                "all scores are 0. Lower the learning rate, or scale the features."
            )
        if is_example or self.gain > NO_GAIN * abs(self.constant):
            return None
        if self.risk > WORSE * abs(self.constant):
            return (
                f"The training ran away: its risk is {self.risk:.3g}, where one score per label, "
                f"the same for every row, has {self.constant:.3g}. Lower the learning rate."
            )
        remedy = "raise the learning rate, train for more epochs, or scale them"
        return (
            "Nothing was learned: one score per label, the same for every row, fits what was said "
            "as well as the network does. If the features should tell labels apart, "
            f"{'collect more answers' if is_head else remedy}."
        )

    def _find_undertrained(self, history: History) -> str | None:
        """Return that the risk was still falling, in a direction that all rows agree on."""
        fall = measure_fall(history.risk, cosine=self.training.options.cosine)
        stopped_early = history.best_epoch is not None and history.best_epoch < len(history.risk)
        if (
            isinstance(self.training.X, PixelRows)
            or stopped_early
            or not fall > STEEP * max(self.gain, 0)
            or self.gain > LEARNED * abs(self.constant)
            or self._measure_coherence() <= COHERENT
        ):
            return None
        share = f"{fall / self.gain:.0%} of" if self.gain > fall else "more than"
        return (
            "The network is undertrained: the risk was still falling at the end of training (in "
            f"the last third of its steps by {share} all that was gained), in a direction that all "
            "rows agree on. Train for more epochs, with a higher learning rate or with smaller "
            "batches."
        )

    def _measure_coherence(self) -> float:
        """Return the mean cosine between the gradients of two halves of the rows, in three splits.

        In a network that has learned what it can, what would help one half hurts the other.
        """
        training, network = self.training, self.training.network
        weights = [w for w in network.parameters() if w.requires_grad and w.ndim > 1]
        if not weights:
            return 0.0
        network.eval()
        for part in network.modules():  # the risk that training minimised has dropout
            if isinstance(part, nn.modules.dropout._DropoutNd):
                part.train()
        device, quarters = training.targets.device, []
        with seeded(training.options.seed, device):
            for rows in self.rows.tensor_split(4):  # which are in a random order
                targets = training.targets.index_select(0, rows.to(device))
                risk = training.risk(network(self._take_rows(rows)), targets)
                gradients = torch.autograd.grad(risk, weights, allow_unused=True)
                quarters.append(
                    torch.cat([g.to_dense().flatten() for g in gradients if g is not None])
                )
        network.eval()
        total, cosines = sum(quarters), []
        for other in quarters[1:]:  # with the first quarter it is a half
            half = quarters[0] + other
            cosines.append(float(nn.functional.cosine_similarity(half, total - half, dim=0)))
        return float(np.mean(cosines))

    def _find_flat_labels(self, classifier: "BaseCandidateClassifier") -> str | None:
        """Return which labels have one score for all rows; not those without answers."""
        answers = self.training.answers
        flat = self.scores.cpu().numpy().std(axis=0) < FLAT
        n_confident = answers.count_state(State.NO) + answers.count_state(State.YES)
        flat &= (n_confident > 0) & (n_confident < len(answers))
        if not flat.any():
            return None
        names = [classifier.label_names_[j] for j in np.flatnonzero(flat)]
        return (
            f"The scores of label {listed(names)} do not vary: nothing was learned about it from "
            "the features. More answers about it, or other features, would help."
        )

    def _find_extremes(self, classifier: "BaseCandidateClassifier") -> str | None:
        """Return that nearly nothing, or nearly everything, is predicted."""
        answers, expected = self.training.answers, None  # the share of pairs that are relevant
        if classifier.class_prior_ is not None:
            expected = float(classifier.class_prior_.mean())
        elif answers.kind == "answers":
            no, yes = (int(answers.count_state(state).sum()) for state in (State.NO, State.YES))
            expected = float(yes / (no + yes)) if no + yes else None
        predicted = classifier.cut_scores(self.scores.cpu().numpy())
        q, empty, share = predicted.shape[1], (~predicted.any(axis=1)).mean(), predicted.mean()
        few = share < FEW_OF_EXPECTED * expected if expected is not None else share == 0
        if empty > NO_LABEL and few:
            wanted = "" if expected is None else f", where {q * expected:.2g} a row are expected"
            return (
                f"No label is predicted for {empty:.0%} of the training rows{wanted}. {OTHER_CUT}."
            )
        if share > ALL_LABELS and (expected is None or expected < EXPECTED):
            other = ", or take a method that knows the class prior" if expected is None else ""
            return f"{share:.0%} of all labels are predicted as relevant. {OTHER_CUT}{other}."
        return None

    def _find_never_predicted(self, classifier: "BaseCandidateClassifier") -> str | None:
        """Return which labels no row has above the cut; not those whose scores or prior say so."""
        scores, prior = self.scores.cpu().numpy(), classifier.class_prior_
        never = ~classifier.cut_scores(scores).any(axis=0) & (scores.std(axis=0) >= FLAT)
        if prior is not None:
            never &= prior > 0
        if not never.any():
            return None
        names = [classifier.label_names_[j] for j in np.flatnonzero(never)]
        remedy = "" if classifier.threshold == "auto" else " threshold='auto' cuts lower."
        return (
            f"Label {listed(names)} will hardly ever be predicted: none of the {len(scores)} "
            f"training rows looked at has a score above the cut.{remedy}"
        )

    def _find_impossible_risk(self, classifier: "BaseCandidateClassifier") -> str | None:
        """Return that the ranking risk of held-out rows is below what any scores can have."""
        training, prior = self.training, classifier.class_prior_
        held_out, has_many_labels = training.held_out, isinstance(training.risk, LabelChunks)
        if held_out is None or prior is None or has_many_labels:
            return None
        if held_out.answers.kind == "positives":  # they exclude nothing
            return None
        scores = predict_scores(training.network, held_out.X, precision=training.options.precision)
        error = classifier.class_prior_error_
        result = check_ranking_risk(
            scores.cpu().numpy(), held_out.answers, prior, class_prior_error=error
        )
        return None if result.is_possible else result.conclusion


def measure_fall(risk: list[float], *, cosine: bool) -> float:
    """Return how far the risk fell in the last part of its epochs, each counted by its rate."""
    n = len(risk)
    if n < 3:
        return 0.0
    # With a rate that falls to zero the last epochs are flat by construction.
    rate = 0.5 * (1 + np.cos(math.pi * np.arange(n) / n)) if cosine else np.ones(n)
    way = (np.cumsum(rate) - rate / 2) / rate.sum()
    distance = np.abs(way - (1 - LAST_PART))
    before = np.asarray(risk)[distance <= max(0.05, distance.min())]
    return float(before.mean() - np.mean(risk[-max(1, n // 30) :]))
