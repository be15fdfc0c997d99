"""What a method must know before it trains: given by the user, or estimated from the answers."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from comes.answers import AnswerRates, Answers, State
from comes.errors import ComesError, ComesWarning, listed, warn_user
from comes.estimator.inputs import CountedAnswers, has_many_labels, per_label
from comes.methods import CCMN, Likelihood, Method, Rates
from comes.priors import (
    ClassPriorEstimate,
    CleanSample,
    RatesEstimate,
    estimate_answer_rates,
    estimate_class_prior,
    estimate_flip_rate,
    estimate_transition,
)
from comes.priors.clean_sample import count_answer_rates, update_prior, update_rates
from comes.priors.noise import MAX_RATE, flip_rate_from_prior
from comes.priors.pooled import AnswerCounts, pool_rates
from comes.selection.intervals import prior_error

Array = npt.NDArray[np.float64]
SMALLEST_RATE = 1e-3  # of "no" or "yes", where a class prior implies it
RATE_NAMES = ("exclude", "no", "yes", "mistake")
OWN_RATES = {
    "answers": "where it is known who was asked, give the rate of 'no'",
    "candidates": "for candidates give the rate of 'exclude'",
    "positives": "for ticked labels give the rate of 'yes'",
}


def determine_rates(
    method: Method,
    X: Any,  # features; None where only the counts of answers are known
    answers: Any,  # Answers or CountedAnswers, with label names
    *,
    class_prior: Any = None,  # as the user gives it
    rates: Any = None,  # as the user gives them
    seed: int = 0,
    needs_prior: bool = False,  # to cut the scores
    clean: CleanSample | None = None,
    weight: Array | None = None,  # of every row; a class prior that is given is that of such rows
) -> Rates:
    """Return what a method must know: what is given, and estimates of the rest.

    Rates are estimated without the weights of rows, as they are those of who answered; a class
    prior is then reweighted. A clean sample sharpens what was estimated.
    """
    given = read_rates(rates, answers.kind)
    stage = _FirstStage(method, X, answers, class_prior, given, seed, clean, weight)
    result = stage.run(needs_prior)
    if weight is not None and class_prior is None and result.class_prior is not None:
        prior = reweight_prior(result.class_prior, answers, weight)
        result = replace(result, class_prior=prior)
    if isinstance(method, Likelihood):
        result = replace(result, prior_weight=weigh_prior(method, answers, class_prior))
    return result


def read_rates(rates: Any, kind: str) -> dict[str, Any]:
    """Return the rates that are given, by name; raise unless they fit the kind of answers."""
    if rates is None:
        return {}
    if isinstance(rates, RatesEstimate):
        rates = rates.rates
    if isinstance(rates, AnswerRates):
        no, yes, mistake = rates.no_rate, rates.yes_rate, rates.mistake_rate
        own = {"exclude": no} if kind == "candidates" else {"no": no, "yes": yes}
        rates = {**own, "mistake": mistake, "people": rates.people}
    if not isinstance(rates, Mapping) or not set(rates) <= {*RATE_NAMES, "people"}:
        raise ComesError(
            "rates must be a comes.answers.AnswerRates, or a dict with some of "
            f"{', '.join(RATE_NAMES)}, such as {{'no': 0.8, 'yes': 0.7}}; got {rates!r}."
        )
    given = {name: values for name, values in rates.items() if values is not None}
    for name, values in given.items():
        if isinstance(values, str):
            removed = name == "exclude" and values == "instance"
            raise ComesError(
                f"the rate of {name!r} must be numbers in (0, 1]; got {values!r}."
                + (INSTANCE_REMOVED if removed else "")
            )
    if "exclude" in given and kind != "candidates":
        raise ComesError(f"the rate of 'exclude' is for candidates; {OWN_RATES[kind]}.")
    if "no" in given and kind != "answers":
        raise ComesError(f"the rate of 'no' is for answers; {OWN_RATES[kind]}.")
    if "yes" in given and kind == "candidates":
        raise ComesError(
            "the rate of 'yes' is for answers, and candidates do not say yes. Leave it out."
        )
    mistake = given.get("mistake", 0.0)
    if not isinstance(mistake, int | float | np.number) or not 0 <= float(mistake) < 0.5:
        raise ComesError(
            f"the rate of 'mistake' must be at least 0 and below 0.5; got {mistake!r}."
        )
    return given


INSTANCE_REMOVED = (
    " Rates that depend on the instance were removed after version 1.0.0, since candidates cannot "
    "tell them from class priors. Leave them out, and give class_prior or a clean sample (clean=): "
    "docs/explain/instance-rates.md."
)


def weigh_prior(method: Likelihood, answers: Any, class_prior: Any) -> float:
    """Return how strongly mean probabilities are kept near the class prior.

    Even an estimated prior helps, but for answers without a yes, where only a prior that is known
    does: few of them say how common rare labels are.
    """
    if method.prior_weight is not None:
        return method.prior_weight
    if has_many_labels(answers):  # a batch says nothing of priors below one in its rows
        return 0.0
    if answers.kind != "answers" or answers.has(State.YES):
        return 1.0
    return 0.0 if class_prior is None or isinstance(class_prior, ClassPriorEstimate) else 0.3


@dataclass(eq=False)
class _FirstStage:
    """Rows with answers, to estimate from them what the user does not give."""

    method: Method
    X: Any
    answers: Any
    class_prior: Any
    given: dict[str, Any]  # rates
    seed: int
    clean: CleanSample | None
    weight: Array | None
    estimate: Any = None  # the first that was made, with standard errors

    @property
    def names(self) -> list[str]:
        """The names of the labels."""
        names: list[str] = self.answers.label_names
        return names

    def run(self, needs_prior: bool) -> Rates:
        """Return what the method needs, and the class prior if cutting its scores needs it."""
        self._check_clean()
        method = self.method
        result = Rates(mistake_rate=float(self.given.get("mistake", 0.0)))
        if method.needs_rates:
            result = self._find_rates(result)
        elif method.needs_flip_rate:
            result = self._find_flip_rate(result)
        elif method.needs_transition:
            S = self._candidates
            options: Any = {"random_state": self.seed}
            result = replace(result, transition=estimate_transition(self.X, S, **options))
        needs_prior = needs_prior or method.needs_class_prior or method.is_over_pairs
        if needs_prior and result.class_prior is None:
            result = replace(result, class_prior=self._find_class_prior())
        source = self.estimate if self.class_prior is None else self.class_prior
        if result.class_prior is not None:
            result = replace(result, class_prior_error=prior_error(source))
        if self.clean is not None:
            result = self._sharpen(result, self.clean)
        self._check_mistakes(result)
        return result

    def _find_rates(self, result: Rates) -> Rates:
        """Return rates and class prior, given or estimated."""
        kind, prior = self.answers.kind, self.class_prior
        if kind == "candidates":
            return self._find_exclude_rate(result)
        if kind == "positives" and "yes" in self.given:
            rate = self._given_rate("yes")
            ticked = self.answers.count_state(State.YES) / len(self.answers)
            prior = (
                np.minimum(ticked / np.maximum(rate, 1e-9), 1)
                if prior is None
                else per_label(prior, "class_prior", self.names)
            )
            return replace(result, class_prior=prior, no_rate=np.zeros_like(rate), yes_rate=rate)
        known: dict[str, Any] = {}
        if prior is not None:
            known["class_prior"] = per_label(prior, "class_prior", self.names)
        for name, state in (("no", State.NO), ("yes", State.YES)):
            if name in self.given:
                known[f"{name}_rate"] = rate = self._given_rate(name)
                never = np.flatnonzero((rate == 0) & (self.answers.count_state(state) > 0))
                if len(never):
                    raise ComesError(
                        f"the rate of {name!r} must be above 0 where somebody said {name!r}; got "
                        f"0 for label {self.names[never[0]]!r}. Leave it out to have it estimated."
                    )
        people = self.given.get("people")
        if len(known) == 3:  # nothing is left to estimate
            return replace(result, **known, people=people)
        a, b = known.get("no_rate"), known.get("yes_rate")
        estimate = self._estimate_prior(no_rate=a, yes_rate=b)
        estimated = {
            "class_prior": estimate.class_prior,
            "no_rate": estimate.rates.no_rate,
            "yes_rate": estimate.rates.yes_rate,
            "people": people
            or {  # a rate that is given is that of everybody
                person: (own_a if a is None else a, own_b if b is None else b)
                for person, (own_a, own_b) in estimate.rates.people.items()
            },
        }
        return replace(result, **estimated | known)

    def _find_exclude_rate(self, result: Rates) -> Rates:
        """Return the exclude rate and the class prior of candidates; either implies the other."""
        if self.class_prior is not None and "exclude" not in self.given:
            prior = self._find_class_prior()
            rate = _imply_exclude_rate(self._weighted_share, prior)
        else:
            estimate = self._estimate_prior()
            is_pooled = isinstance(estimate, RatesEstimate)
            rate = np.asarray(estimate.rates.no_rate if is_pooled else estimate.exclude_rate)
            prior = np.asarray(estimate.class_prior)
            if self.class_prior is not None:
                prior = self._find_class_prior()
        return replace(result, class_prior=prior, no_rate=rate, yes_rate=np.zeros_like(rate))

    def _find_class_prior(self) -> Array:
        """Return the class prior given or estimated, 0 for labels that every row excludes."""
        if self.class_prior is None:
            return np.asarray(self._estimate_prior().class_prior)
        prior = per_label(self.class_prior, "class_prior", self.names)
        possible = 1 - self._excluded_share
        prior[possible == 0] = 0
        _warn_of_impossible_prior(prior, possible, len(self.answers), self.names)
        return prior

    def _find_flip_rate(self, result: Rates) -> Rates:
        """Return the flip rate given, estimated, or implied by the class prior."""
        S = self._candidates
        given = self.method.flip_rate if isinstance(self.method, CCMN) else None
        if isinstance(given, str):
            if given != "class_prior":
                raise ComesError(
                    f"flip_rate must be numbers in [0, 1), 'class_prior' or None; got {given!r}."
                )
            prior = self._find_class_prior()
            rate = flip_rate_from_prior(prior, S)
            if self.weight is not None and self.class_prior is not None:
                rate = np.clip(1 - _imply_exclude_rate(self._weighted_share, prior), 0, MAX_RATE)
            return replace(result, class_prior=prior, flip_rate=rate)
        if given is None:
            rate = estimate_flip_rate(self.X, S, random_state=self.seed)
        else:
            rate = per_label(given, "flip_rate", self.names)
            if (rate > MAX_RATE).any():
                raise ComesError(
                    f"flip_rate must be at most {MAX_RATE}; got {given!r}. Leave it out to "
                    "estimate it."
                )
        result = replace(result, flip_rate=rate)
        if not self.method.is_over_pairs or self.class_prior is not None:
            return result
        prior = np.maximum(1 - self._excluded_share / (1 - rate), 0)
        return replace(result, class_prior=prior)

    def _estimate_prior(self, no_rate: Array | None = None, yes_rate: Array | None = None) -> Any:
        """Return class priors and rates estimated from answers, given rates that are known."""
        answers = self.answers
        if "exclude" in self.given:
            no_rate = self._given_rate("exclude")
        known: Any = {"no_rate": no_rate, "yes_rate": yes_rate}
        if has_many_labels(answers):
            is_counted = isinstance(answers, CountedAnswers)
            counts = answers.counts if is_counted else AnswerCounts.of(answers)
            estimate: Any = pool_rates(counts, answers.kind, **known, label_names=self.names)
        else:
            options: Any = {"random_state": self.seed}
            options["label_names"] = self.names
            with warnings.catch_warnings():  # of labels that were named before
                warnings.filterwarnings("ignore", ".*(no|every) row excludes it", ComesWarning)
                if answers.kind == "candidates":
                    estimate = estimate_class_prior(
                        self.X, answers, exclude_rate=no_rate, **options
                    )
                else:
                    estimate = estimate_answer_rates(self.X, answers, **known, **options)
        if self.estimate is None:
            self.estimate = estimate
        return estimate

    def _given_rate(self, name: str) -> Array:
        return per_label(self.given[name], f"the rate of {name!r}", self.names)

    @property
    def _candidates(self) -> npt.NDArray[np.bool_]:
        """What nobody excluded, as far as the questions were drawn at random."""
        return np.asarray(self.answers.without_chosen().candidates)

    @property
    def _excluded_share(self) -> Array:
        """The share of rows that exclude a label."""
        return np.asarray(self.answers.without_chosen().count_state(State.NO) / len(self.answers))

    @property
    def _weighted_share(self) -> Array:
        """The same, each row with its weight."""
        if self.weight is None:
            return self._excluded_share
        return np.asarray(1 - np.average(self._candidates, axis=0, weights=self.weight))

    def _check_clean(self) -> None:
        """Raise an error unless the clean sample has the labels, and the kind, of the answers."""
        if self.clean is None:
            return
        q, n_clean, kind = len(self.names), self.clean.relevant.shape[1], self.answers.kind
        if n_clean != q:
            raise ComesError(f"clean must have the {q} labels of the answers; got {n_clean}.")
        if self.clean.answers is not None and self.clean.answers.kind != kind:
            raise ComesError(
                f"the answers of clean must be of the kind that is trained on, {kind!r}, as their "
                f"rates mean different things; got {self.clean.answers.kind!r}. Leave them out."
            )

    def _sharpen(self, result: Rates, clean: CleanSample) -> Rates:
        """Return what was estimated, averaged with what a clean sample shows."""
        given = self.given
        if result.class_prior is not None and self.class_prior is None:
            prior, error = update_prior(
                result.class_prior, result.class_prior_error, clean.relevant
            )
            result = replace(result, class_prior=prior, class_prior_error=error)
            is_implied = self.answers.kind == "candidates" and "exclude" not in given
            if result.no_rate is not None and is_implied:
                rate = _imply_exclude_rate(self._excluded_share, prior)
                result = replace(result, no_rate=rate)
        if result.no_rate is None or clean.answers is None:
            return result
        no_error: Any = np.full(len(self.names), np.nan)  # not known
        yes_error: Any = no_error
        if isinstance(self.estimate, RatesEstimate):
            no_error, yes_error = self.estimate.rates.no_error, self.estimate.rates.yes_error
        elif self.answers.kind == "candidates" and result.class_prior_error is not None:
            # p = share / (1 - pi), so their relative errors are those of 1 - pi.
            relative = result.class_prior_error / np.maximum(1 - result.class_prior, 1e-9)
            no_error = result.no_rate * relative
        rates = AnswerRates(result.no_rate, result.yes_rate, no_error=no_error, yes_error=yes_error)
        sharp = update_rates(rates, count_answer_rates(clean.answers, clean.relevant))
        if not {"no", "exclude"} & set(given):
            result = replace(result, no_rate=sharp.no_rate)
        return result if "yes" in given else replace(result, yes_rate=sharp.yes_rate)

    def _check_mistakes(self, result: Rates) -> None:
        """Raise an error if mistakes would be as common as true answers about a label."""
        no = "exclude" if self.answers.kind == "candidates" else "no"
        for name, rate in ((no, result.no_rate), ("yes", result.yes_rate)):
            if rate is None or not result.mistake_rate:
                continue
            wrong = np.flatnonzero((rate > 0) & (rate <= result.mistake_rate))
            if len(wrong):
                raise ComesError(
                    f"the rate of 'mistake' must be below that of {name!r} for every label; "
                    f"got {result.mistake_rate:g}, and {rate[wrong[0]]:.3g} for label "
                    f"{self.names[wrong[0]]!r}. Lower it."
                )


def _imply_exclude_rate(share: Array, class_prior: Array) -> Array:
    """Return the exclude rate that a class prior implies, given the share of excluding rows."""
    return np.clip(share / np.maximum(1 - class_prior, 1e-9), SMALLEST_RATE, 1)


def _warn_of_impossible_prior(
    prior: Array,
    possible: Array,  # share of the rows in which a label is a candidate, (q,)
    n: int,
    label_names: list[str],
) -> None:
    """Warn of priors of 0, and above the share of rows in which the label is a candidate."""
    highest = possible + 4 * np.sqrt(prior * (1 - prior) / n) + 1e-9
    cases: tuple[tuple[Any, str], ...] = (
        (
            (prior == 0) & (possible > 0),
            "is 0: it is learned as never relevant. Correct the prior if that is not known to be "
            "so.",
        ),
        (
            prior > highest,
            "is above the share of rows in which it is a candidate, so it cannot be right; or are "
            "these complementary labels? Then pass them as complementary=.",
        ),
    )
    for concerned, reason in cases:
        names = [label_names[j] for j in np.flatnonzero(concerned)]
        if names:
            message = f"The class prior of label {listed(names)} {reason}"
            warn_user(message)


def reweight_prior(prior: Array, answers: Answers, weight: Array) -> Array:
    """Return the class prior of weighted rows, given that of the same rows without weights.

    Whether a pair is asked about, and what is said if it is relevant or not, does not depend on
    the weight of its row. So the share of "no" is in proportion to 1 - pi, and that of "yes" to
    pi, with weights and without; where both are said, their sum is made 1.
    """

    def weighted_ratio(mask: npt.NDArray[np.bool_]) -> Array:  # of shares, with to without
        plain, weighted = mask.mean(axis=0), (weight @ mask) / weight.sum()
        return np.where(plain > 0, weighted / np.where(plain > 0, plain, 1), 1.0)

    drawn = answers.without_chosen()
    asked = np.ones(answers.shape, bool) if drawn.asked is None else drawn.asked
    of_asked = weighted_ratio(asked)
    irrelevant = (1 - prior) * weighted_ratio(drawn.excluded) / of_asked
    relevant = prior * weighted_ratio(drawn.confirmed) / of_asked
    says_no, says_yes = drawn.excluded.any(axis=0), drawn.confirmed.any(axis=0)
    both = relevant / np.maximum(relevant + irrelevant, np.finfo(float).tiny)
    new = np.where(says_no & says_yes, both, np.where(says_yes, relevant, 1 - irrelevant))
    return np.asarray(np.where(says_no | says_yes, np.clip(new, 0, 1), prior))
