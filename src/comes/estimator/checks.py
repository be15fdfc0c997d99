"""What may be wrong: with labels before a fit, and with its result, found without a true label."""

import math
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from comes.answers import State
from comes.errors import ComesError, ComesWarning, listed
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
LAST_PART, STEEP, COHERENT, LEARNED = 1 / 3, 0.15, 0.15, 0.8
N_SPLITS = 4
NO_LABEL, FEW_OF_EXPECTED = 0.95, 0.1  # of rows; of the labels that the class prior says
ALL_LABELS, EXPECTED = 0.95, 0.8  # of pairs
OTHER_CUT = (
    "Cut the scores elsewhere (threshold='prior'; --threshold prior on the command line), or order "
    "labels by their probability"
)


def check_labels(answers: Any, method: Method) -> None:
    """Raise an error if nothing can be learned; warn of labels from which little can be."""
    kind, (says_no, says_yes, says_maybe) = (
        answers.kind,
        map(answers.has, (State.NO, State.YES, State.MAYBE)),
    )
    if kind == "positives" and not method.accepts_positives:
        raise ComesError(
            f"method {method.name!r} learns from excluded labels, and ticked labels exclude none. "
            f"Take method={DEFAULT!r}."
        )
    if kind != "candidates" and not (says_yes or (kind == "answers" and (says_no or says_maybe))):
        raise ComesError("nothing can be learned: there is no answer about any pair.")
    if kind == "answers":
        if not (says_no or says_yes):
            raise ComesError("nothing can be learned: every answer is 'maybe'.")
        if not method.accepts_positives and not answers.without_chosen().has(State.NO):
            chosen = " to a question drawn at random" if says_no else ""
            raise ComesError(
                f"method {method.name!r} learns from labels that somebody said 'no' to, and no "
                f"answer{chosen} is 'no'. Take method={DEFAULT!r}."
            )
        # A class prior is estimated from who was asked, and from yes.
        if method.uses_only_candidates and not method.needs_class_prior:
            _warn(
                f"Method {method.name!r} takes candidates only: who was asked, and yes, are not "
                "used."
            )
    cases = {}
    if kind == "candidates":
        cases = _find_idle_candidates(answers, method)
    elif kind == "answers":
        cases = _find_idle_answers(answers)
    for message, concerned in cases.items():
        if concerned.any():
            names = [answers.label_names[j] for j in np.flatnonzero(concerned)]
            _warn(message.format(listed(names)))
    if answers.shape[1] == 1 and (method.is_over_pairs or method.needs_transition):
        _warn(f"This risk needs two labels; with one nothing is learned. Take method={DEFAULT!r}.")


def _find_idle_answers(answers: Any) -> dict[str, npt.NDArray[np.bool_]]:
    """Return which labels nobody was asked about, or have answers of one kind, by message."""
    n_no, n_yes, n_maybe = map(answers.count_state, (State.NO, State.YES, State.MAYBE))
    no, yes, maybe = n_no > 0, n_yes > 0, n_maybe > 0
    other_no, other_yes = no.any(), yes.any()  # of any label
    cases = {
        "Nobody was asked about label {}: nothing is learned about it.": ~(no | yes | maybe),
        "Every answer about label {} is 'maybe': nothing is learned about it.": ~no & ~yes & maybe,
        "Every sure answer about label {} is 'yes': it is learned as relevant.": (
            yes & ~no & other_no
        ),
        "Every sure answer about label {} is 'no': it is learned as irrelevant.": (
            no & ~yes & other_yes
        ),
    }
    if len(answers) >= FEWEST_ROWS:
        few = f"Fewer than {FEWEST_ANSWERS} answers about label {{}} are {{word}}: {TOO_FEW}"
        few_yes, few_no = n_yes < FEWEST_ANSWERS, n_no < FEWEST_ANSWERS
        cases[few.replace("{word}", "'yes'")] = yes & few_yes & (no | ~other_no)
        cases[few.replace("{word}", "'no'")] = no & few_no & (yes | ~other_yes)
    return cases


def _find_idle_candidates(answers: Any, method: Method) -> dict[str, npt.NDArray[np.bool_]]:
    """Return which labels no row, few rows or every row excludes, by message."""
    if method.is_over_pairs:
        never = "nothing pushes its scores down, and they mean nothing."
    else:
        never = {
            "relevant": "it is taken for relevant everywhere.",
            "unknown": "nothing shows where it is irrelevant.",
            "left out": "it is left out of the risk, since nothing shows where it is irrelevant, "
            "and its scores mean nothing.",
        }[method.never_excluded]
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


def _warn(message: str) -> None:
    warnings.warn(message, ComesWarning, stacklevel=5)


def warn_of(history: History) -> None:
    """Warn of what was wrong with a fit."""
    if process_number() == 0:
        for message in history.warnings:
            warnings.warn(message, ComesWarning, stacklevel=3)


def warn_of_many(histories: list[History]) -> None:
    """Warn once of what was wrong with some of many fits."""
    concerned = [history.warnings for history in histories if history.warnings]
    if concerned:
        warnings.warn(
            f"{len(concerned)} of {len(histories)} fits have warnings (history_.warnings). The "
            f"first: {concerned[0][0]}",
            ComesWarning,
            stacklevel=3,
        )


class FitCheck:
    """A look at some training rows of a network that was trained: its risk beside plainer ones."""

    def __init__(self, training: "Training") -> None:
        self.training = training
        self.rows = self._draw_rows()
        self.scores = self._score_rows()
        # Of the network; of the mean score of each label; of zeros.
        self.own, self.constant, self.zero = self._compare_risks()
        self.gain = self.constant - self.own

    def refuse_runaway(self) -> None:
        """Raise an error if the risk is finite, but far above that of a network without knowledge.

        Above it at all is enough where one score for all rows is as good, as if the network were
        dead.
        """
        if self.training.method.is_custom or not self.zero > 0:
            return
        ratio = self.own / self.zero
        is_dead = ratio > WORSE and self.gain <= NO_GAIN * abs(self.constant)
        if is_dead or not (ratio <= RAN_AWAY and abs(ratio) <= FAR_AWAY):
            raise ComesError(
                f"the training ran away: the risk is {self.own:.3g} at its end, and "
                f"{self.zero:.3g} where all scores are 0. Lower the learning rate, or scale the "
                "features."
            )

    def find_problems(self, classifier: "BaseCandidateClassifier", history: History) -> list[str]:
        """Return what is wrong with a fit, a sentence each."""
        if history.interrupted or len(self.rows) < FEWEST_ROWS:
            return self._find_impossible_risk(classifier)
        training, options = self.training, self.training.options
        is_head = training.cross_score is not None  # its steps are fixed, its weights penalised
        n_steps = options.epochs * math.ceil(len(training.targets) / options.batch_size)
        is_short = getattr(classifier, "epochs", None) is not None and n_steps < FEWEST_STEPS
        problems: list[str] = []
        if is_short and not is_head:  # somebody asked for very few steps, as in an example
            if not training.method.is_custom and self.own >= FAR_WORSE * self.zero:
                problems = self._find_worse_than_zero()
        else:
            if not training.method.is_custom:
                problems = self._find_worse_than_zero()
            problems = problems or self._find_nothing_learned(is_head)
            if not problems:
                problems = [] if is_head else self._find_undertrained(history)
                problems += self._find_flat_labels(classifier)
                problems += self._find_extremes(classifier)
        return problems + self._find_impossible_risk(classifier)

    def _draw_rows(self) -> Tensor:
        """Return the numbers of some rows, in main memory."""
        training, (n, q) = self.training, self.training.targets.shape
        most = min(MOST_ROWS, max(FEWEST_ROWS, MOST_SCORES // q))
        if isinstance(training.X, PixelRows):
            most = MOST_PICTURES
        elif training.method.is_over_pairs:  # whose risk is large
            most = 2 * training.options.batch_size
        generator = torch.Generator().manual_seed(training.options.seed)
        return torch.randperm(n, generator=generator)[:most]

    def _take_rows(self, rows: Tensor) -> Any:
        """Return rows of the features."""
        X = self.training.X
        return X[rows.to(X.device)] if isinstance(X, Tensor) else X[rows]

    @torch.no_grad()
    def _score_rows(self) -> Tensor:
        """Return the scores of the rows."""
        training, X = self.training, self.training.X
        training.network.eval()
        if not isinstance(X, PixelRows):
            scores: Tensor = training.network(self._take_rows(self.rows))
            return scores.float()
        precision = training.options.precision
        with torch.autocast(X.device.type, precision, enabled=precision is not None):
            batches = X.batches(self.rows.split(training.options.part_size or MOST_PICTURES))
            return torch.cat([training.network(batch).float() for batch in batches])

    @torch.no_grad()
    def _compare_risks(self) -> list[float]:
        """Return the risks of the scores, of constant ones, and of zeros."""
        scores, training = self.scores, self.training
        targets = training.targets.index_select(0, self.rows.to(training.targets.device))
        constant = scores.mean(dim=0, keepdim=True).expand_as(scores).contiguous()
        others = (scores, constant, torch.zeros_like(scores))
        return [value_or_nan(training.risk, some, targets) for some in others]

    def _find_worse_than_zero(self) -> list[str]:
        """Say that the scores are worse than none."""
        if not 0 < WORSE_THAN_ZERO * self.zero < self.own:
            return []
        return [
            f"The training ran away: its risk is {self.own:.3g}, and {self.zero:.3g} where all "
            "scores are 0. Lower the learning rate, or scale the features."
        ]

    def _find_nothing_learned(self, is_head: bool) -> list[str]:
        """Say that constant scores would be as good."""
        if self.gain > NO_GAIN * abs(self.constant):
            return []
        if self.own > WORSE * abs(self.constant):
            return [
                f"The training ran away: its risk is {self.own:.3g}, where one score per label, "
                f"the same for every row, has {self.constant:.3g}. Lower the learning rate."
            ]
        remedy = "raise the learning rate, train for more epochs, or scale them"
        if is_head:
            remedy = "collect more answers"
        return [
            "Nothing was learned: one score per label, the same for every row, fits what was said "
            f"as well as the network does. If the features should tell labels apart, {remedy}."
        ]

    def _find_undertrained(self, history: History) -> list[str]:
        """Say that the risk was still falling, in a direction that all rows agree on."""
        training = self.training
        fall = measure_fall(history.risk, cosine=training.options.cosine)
        stopped_early = history.best_epoch is not None and history.best_epoch < len(history.risk)
        is_steep = fall > max(STEEP * max(self.gain, 0), 0)
        if isinstance(training.X, PixelRows) or stopped_early or not is_steep:
            return []
        is_learned = self.gain > LEARNED * abs(self.constant)
        if is_learned or self.measure_coherence() <= COHERENT:
            return []
        share = f"{fall / self.gain:.0%} of" if self.gain > fall else "more than"
        return [
            "The network is undertrained: the risk was still falling at the end of training (in "
            f"the last third of its steps by {share} all that was gained), in a direction that all "
            "rows agree on. Train for more epochs, with a higher learning rate or with smaller "
            "batches."
        ]

    def measure_coherence(self) -> float:
        """Return how far two halves of the rows agree on how the weights should change: a cosine.

        A network that has learned what it can is torn between its rows: what would help one half
        hurts the other. One that memorises its rows changes for each on its own account.
        """
        training, network = self.training, self.training.network
        weights = [w for w in network.parameters() if w.requires_grad and w.ndim > 1]
        if not weights:
            return 0.0
        network.eval()
        for part in network.modules():  # what training minimised has dropout, so its gradient has
            if isinstance(part, nn.modules.dropout._DropoutNd):
                part.train()
        device, cosines = training.targets.device, []
        with seeded(training.options.seed, device):
            for _ in range(N_SPLITS):
                gradients = []
                for rows in self.rows[torch.randperm(len(self.rows))].tensor_split(2):
                    targets = training.targets.index_select(0, rows.to(device))
                    risk = training.risk(network(self._take_rows(rows)), targets)
                    of_each = torch.autograd.grad(risk, weights, allow_unused=True)
                    parts = [g.to_dense().flatten() for g in of_each if g is not None]
                    gradients.append(torch.cat(parts))
                first, second = gradients
                cosines.append(float(nn.functional.cosine_similarity(first, second, dim=0)))
        network.eval()
        return float(np.mean(cosines))

    def _find_flat_labels(self, classifier: "BaseCandidateClassifier") -> list[str]:
        """Say which labels have one score for all rows; not those without answers."""
        answers = self.training.answers
        flat = self.scores.cpu().numpy().std(axis=0) < FLAT
        n_confident = answers.count_state(State.NO) + answers.count_state(State.YES)
        flat &= (n_confident > 0) & (n_confident < len(answers))
        if not flat.any():
            return []
        names = [classifier.label_names_[j] for j in np.flatnonzero(flat)]
        return [
            f"The scores of label {listed(names)} do not vary: nothing was learned about it from "
            "the features. More answers about it, or other features, would help."
        ]

    def _find_extremes(self, classifier: "BaseCandidateClassifier") -> list[str]:
        """Say that nearly nothing, or nearly everything, is predicted."""
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
            return [
                f"No label is predicted for {empty:.0%} of the training rows{wanted}. {OTHER_CUT}."
            ]
        if share > ALL_LABELS and (expected is None or expected < EXPECTED):
            other = ", or take a method that knows the class prior" if expected is None else ""
            return [f"{share:.0%} of all labels are predicted as relevant. {OTHER_CUT}{other}."]
        return []

    def _find_impossible_risk(self, classifier: "BaseCandidateClassifier") -> list[str]:
        """Say if the ranking risk of rows that early stopping held out is below what is possible.

        Any scores show it, not only those of a ranking risk; ticked labels have no exclusions.
        """
        held_out, prior = self.training.held_out, classifier.class_prior_
        if held_out is None or prior is None or held_out.answers.kind == "positives":
            return []
        if isinstance(self.training.risk, LabelChunks):  # too many labels for their pairs
            return []
        precision = self.training.options.precision
        scores = predict_scores(self.training.network, held_out.X, precision=precision)
        result = check_ranking_risk(
            scores.cpu().numpy(),
            held_out.answers,
            prior,
            class_prior_error=classifier.class_prior_error_,
        )
        return [] if result.is_possible else [result.conclusion]


def measure_fall(risk: list[float], *, cosine: bool) -> float:
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
