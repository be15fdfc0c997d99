"""What a method must know before it trains: given by the user, or estimated from the answers."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from comes.answers import AnswerRates, Answers, State
from comes.errors import ComesError, ComesWarning
from comes.estimator.counted_answers import CountedAnswers
from comes.estimator.given_rates import check_mistakes, check_rates
from comes.estimator.inputs import per_label
from comes.estimator.reading_answers import has_many_labels, warn_of_impossible_prior
from comes.methods import METHODS, Method, Rates
from comes.priors import (
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
OWN_RATES = {
    "answers": "where it is known who was asked, give no_rate",
    "candidates": "for candidates give exclude_rate",
    "positives": "for ticked labels give yes_rate",
}


@dataclass(frozen=True, eq=False)
class FirstStage:
    """Rows with answers, to estimate from them what the user does not give."""

    X: Any
    is_scaled: bool  # X is scaled just as the estimators of priors would scale it
    answers: Answers
    given: Rates
    seed: int
    clean: CleanSample | None = None
    weight: Array | None = None  # of every row; a class prior that is given is that of such rows
    made: list[Any] = field(default_factory=list)  # what was estimated, with standard errors

    def run(self, method: Method, *, needs_prior: bool = False) -> Rates:
        """Return what the method needs, and the prior if cutting its scores needs it."""
        self._check_clean()
        found = self._determine_rates(method, needs_prior)
        given = self.given.class_prior
        source = given if given is not None else next(iter(self.made), None)
        if found.class_prior_error is None and found.class_prior is not None:
            found = replace(found, class_prior_error=prior_error(source))
        if self.clean is not None:
            found = self._sharpen(found, self.clean)
        check_mistakes(found, self._names)
        return found

    def _sharpen(self, found: Rates, clean: CleanSample) -> Rates:
        """Return what was estimated, averaged with what a clean sample shows."""
        if found.class_prior is not None and self.given.class_prior is None:
            prior, error = update_prior(found.class_prior, found.class_prior_error, clean.relevant)
            found = replace(found, class_prior=prior, class_prior_error=error)
            is_implied = self.answers.kind == "candidates" and self.given.exclude_rate is None
            if found.no_rate is not None and is_implied:
                rate = _imply_exclude_rate(self._excluded_share, prior)
                found = replace(found, no_rate=rate)
        if found.no_rate is None or clean.answers is None:
            return found
        rates = AnswerRates(found.no_rate, found.yes_rate, **self._find_rate_errors(found))
        counted = count_answer_rates(clean.answers, clean.relevant)
        sharp = update_rates(rates, counted)
        known = {
            "no_rate": self.given.no_rate is not None or self.given.exclude_rate is not None,
            "yes_rate": self.given.yes_rate is not None,
        }
        return replace(found, **{n: getattr(sharp, n) for n, given in known.items() if not given})

    def _check_clean(self) -> None:
        """Raise an error unless the clean sample has the labels, and the kind, of the answers."""
        if self.clean is None:
            return
        q, n_clean, kind = self.answers.shape[1], self.clean.relevant.shape[1], self.answers.kind
        if n_clean != q:
            raise ComesError(f"clean must have the {q} labels of the answers; got {n_clean}.")
        if self.clean.answers is not None and self.clean.answers.kind != kind:
            raise ComesError(
                f"the answers of clean must be of the kind that is trained on, {kind!r}, as their "
                f"rates mean different things; got {self.clean.answers.kind!r}. Leave them out."
            )

    def _find_rate_errors(self, found: Rates) -> dict[str, Any]:
        """Return the standard errors of estimated rates; NaN where they are not known."""
        made = next(iter(self.made), None)
        if isinstance(made, RatesEstimate):
            return {"no_error": made.rates.no_error, "yes_error": made.rates.yes_error}
        unknown = np.full(len(self._names), np.nan)
        if self.answers.kind != "candidates" or found.class_prior_error is None:
            return {"no_error": unknown, "yes_error": unknown}
        # p = share / (1 - pi), so their relative errors are those of 1 - pi.
        relative = found.class_prior_error / np.maximum(1 - found.class_prior, 1e-9)
        return {"no_error": found.no_rate * relative, "yes_error": unknown}

    def _determine_rates(self, method: Method, needs_prior: bool) -> Rates:
        """Return what the method needs, without the error of the class prior."""
        self._check_given(method)
        found = Rates(mistake_rate=self.given.mistake_rate)
        if method.needs_rates:
            return self._find_rates(found)
        if method.needs_flip_rate:
            found = self._find_flip_rate(method)
        elif method.needs_transition:
            found = Rates(transition=self._estimate(estimate_transition))
        needs_prior = needs_prior or method.needs_class_prior or not method.has_zero
        if needs_prior and found.class_prior is None:
            found = replace(found, class_prior=self._find_class_prior())
        return found

    @property
    def _names(self) -> list[str]:
        """The names of the labels."""
        assert self.answers.label_names is not None
        return self.answers.label_names

    @property
    def _candidates(self) -> npt.NDArray[np.bool_]:
        """What nobody excluded, as far as the questions were drawn at random."""
        return self.answers.without_chosen().candidates

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

    def _check_given(self, method: Method) -> None:
        """Raise an error if something was given that does not fit the method or the answers."""
        given, kind = self.given, self.answers.kind
        if given.flip_rate is not None and not method.needs_flip_rate:
            raise ComesError(
                f"flip_rate is for method {_list_methods(lambda m: m.needs_flip_rate)}; leave it "
                "out of others."
            )
        if given.exclude_rate is not None and kind != "candidates":
            raise ComesError(f"exclude_rate is for candidates; {OWN_RATES[kind]}.")
        if given.no_rate is not None and kind != "answers":
            raise ComesError(f"no_rate is for answers; {OWN_RATES[kind]}.")
        if given.yes_rate is not None and kind == "candidates":
            raise ComesError(
                "yes_rate is for answers, and candidates do not say yes. Leave it out."
            )

    def _find_rates(self, found: Rates) -> Rates:
        """Return rates and class prior, given or estimated."""
        if self.answers.kind == "candidates":
            return self._find_exclude_rate(found)
        if self.answers.kind == "positives" and self.given.yes_rate is not None:
            rate = per_label(self.given.yes_rate, "yes_rate", self._names)
            ticked = self.answers.count_state(State.YES) / len(self.answers)
            prior = np.minimum(ticked / np.maximum(rate, 1e-9), 1)
            given = self.given.class_prior
            prior = prior if given is None else per_label(given, "class_prior", self._names)
            return replace(found, class_prior=prior, no_rate=np.zeros_like(rate), yes_rate=rate)
        names = ("class_prior", "no_rate", "yes_rate")
        given = {name: getattr(self.given, name) for name in names}
        known: dict[str, Any] = {
            name: per_label(values, name, self._names)
            for name, values in given.items()
            if values is not None
        }
        check_rates(known, self.answers, self._names)
        if len(known) == len(names):  # nothing is left to estimate
            return replace(found, **known)
        a, b = known.get("no_rate"), known.get("yes_rate")
        estimate = self._estimate_prior(no_rate=a, yes_rate=b)
        people = {  # a rate that is given is that of everybody
            person: (own_a if a is None else a, own_b if b is None else b)
            for person, (own_a, own_b) in estimate.rates.people.items()
        }
        found = replace(
            found,
            class_prior=estimate.class_prior,
            no_rate=estimate.rates.no_rate,
            yes_rate=estimate.rates.yes_rate,
            people=people,
        )
        return replace(found, **known)

    def _find_exclude_rate(self, found: Rates) -> Rates:
        """Return the exclude rate and the class prior of candidates; either implies the other."""
        if self.given.class_prior is not None and self.given.exclude_rate is None:
            prior = self._find_class_prior()
            rate = _imply_exclude_rate(self._weighted_share, prior)
        else:
            estimate = self._estimate_prior()
            prior = np.asarray(estimate.class_prior)
            is_pooled = isinstance(estimate, RatesEstimate)
            rate = np.asarray(estimate.rates.no_rate if is_pooled else estimate.exclude_rate)
            if self.given.class_prior is not None:
                prior = self._find_class_prior()
        return replace(found, class_prior=prior, no_rate=rate, yes_rate=np.zeros_like(rate))

    def _find_class_prior(self) -> Array:
        """Return the class prior given or estimated, 0 for labels that every row excludes."""
        if self.given.class_prior is None:
            return np.asarray(self._estimate_prior().class_prior)
        prior = per_label(self.given.class_prior, "class_prior", self._names)
        possible = 1 - self._excluded_share
        prior[possible == 0] = 0
        warn_of_impossible_prior(prior, possible, len(self.answers), self._names)
        return prior

    def _estimate_prior(self, no_rate: Array | None = None, yes_rate: Array | None = None) -> Any:
        """Return class priors and rates estimated from answers, given rates that are known."""
        answers: Any = self.answers
        if self.given.exclude_rate is not None:
            no_rate = per_label(self.given.exclude_rate, "exclude_rate", self._names)
        if has_many_labels(answers):
            is_counted = isinstance(answers, CountedAnswers)
            counts = answers.counts if is_counted else AnswerCounts.of(answers)
            estimate: Any = pool_rates(
                counts, answers.kind, no_rate=no_rate, yes_rate=yes_rate, label_names=self._names
            )
            self.made.append(estimate)
            return estimate
        options: dict[str, Any] = {
            "random_state": self.seed,
            "label_names": self._names,
            "is_scaled": self.is_scaled,
        }
        with warnings.catch_warnings():  # of labels that `warn_of_idle_labels` has named
            warnings.filterwarnings("ignore", ".*(no|every) row excludes it", ComesWarning)
            if answers.kind == "candidates":
                estimate = estimate_class_prior(self.X, answers, exclude_rate=no_rate, **options)
            else:
                estimate = estimate_answer_rates(
                    self.X, answers, no_rate=no_rate, yes_rate=yes_rate, **options
                )
        self.made.append(estimate)
        return estimate

    def _find_flip_rate(self, method: Method) -> Rates:
        """Return the flip rate given, estimated, or implied by the class prior."""
        S, given = self._candidates, self.given
        if isinstance(given.flip_rate, str):
            if given.flip_rate != "class_prior":
                raise ComesError(
                    "flip_rate must be numbers in [0, 1), 'class_prior' or None; got "
                    f"{given.flip_rate!r}."
                )
            prior = self._find_class_prior()
            if self.weight is not None and given.class_prior is not None:
                rate = 1 - _imply_exclude_rate(self._weighted_share, prior)
                return Rates(prior, flip_rate=np.clip(rate, 0, MAX_RATE))
            return Rates(prior, flip_rate=flip_rate_from_prior(prior, S))
        if given.flip_rate is None:
            rate = self._estimate(estimate_flip_rate)
        else:
            rate = per_label(given.flip_rate, "flip_rate", self._names)
            if (rate > MAX_RATE).any():
                got = f"{given.flip_rate!r}. Leave it out to estimate it."
                raise ComesError(f"flip_rate must be at most {MAX_RATE}; got {got}")
        if method.has_zero:
            return Rates(flip_rate=rate)
        if given.class_prior is not None:
            return Rates(self._find_class_prior(), flip_rate=rate)
        prior = np.maximum(1 - self._excluded_share / (1 - rate), 0)
        return Rates(prior, flip_rate=rate)

    def _estimate(self, estimate: Callable[..., Any], **options: Any) -> Any:
        """Return what one of the estimators of `comes.priors` finds on these candidates."""
        S = self._candidates
        return estimate(self.X, S, random_state=self.seed, is_scaled=self.is_scaled, **options)


def _imply_exclude_rate(share: Array, class_prior: Array) -> Array:
    """Return the exclude rate that a class prior implies, given the share of excluding rows."""
    return np.clip(share / np.maximum(1 - class_prior, 1e-9), SMALLEST_RATE, 1)


def _list_methods(condition: Callable[[Method], bool]) -> str:
    """Return the names of the methods with a variant that meets the condition."""
    names = (n for n, f in METHODS.items() if any(map(condition, f.list_variants())))
    return " or ".join(repr(name) for name in names)
