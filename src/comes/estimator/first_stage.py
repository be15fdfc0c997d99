"""What a method must know before it trains: given by the user, or estimated from candidates."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from comes.errors import ComesError, ComesWarning
from comes.estimator.inputs import NamedCandidates, per_label, warn_of_impossible_prior
from comes.methods import METHODS, Knowledge, Method
from comes.priors import (
    MAX_RATE,
    estimate_class_prior,
    estimate_flip_rate,
    estimate_transition,
    flip_rate_from_prior,
)
from comes.selection import prior_error


@dataclass(frozen=True, eq=False)
class FirstStage:
    """Rows with candidates, to estimate from them what the user does not give."""

    X: Any
    is_scaled: bool  # X is scaled just as the estimators of priors would scale it
    candidates: NamedCandidates
    given: Knowledge
    seed: int

    def run(self, method: Method, *, needs_prior: bool = False) -> Knowledge:
        """Return what the method needs, and the prior if cutting its scores needs it."""
        found = Knowledge()
        if method.needs_flip_rate:
            found = self._find_flip_rate(method)
        elif self.given.flip_rate is not None:
            raise ComesError(
                f"flip_rate is for method {_list_methods(lambda m: m.needs_flip_rate)}; leave it "
                "out of others."
            )
        elif method.needs_transition:
            found = Knowledge(transition=self._estimate(estimate_transition))
        needs_prior = needs_prior or method.needs_class_prior or not method.has_zero
        if needs_prior and found.class_prior is None:
            prior = self._find_class_prior()
            found = replace(prior, flip_rate=found.flip_rate, transition=found.transition)
        return found

    def _find_class_prior(self) -> Knowledge:
        """Return the class prior given or estimated, 0 for labels that every row excludes."""
        S, names = self.candidates.matrix, self.candidates.label_names
        if self.given.class_prior is None:
            with warnings.catch_warnings():  # of labels that `warn_of_idle_labels` has named
                warnings.filterwarnings("ignore", ".*(no|every) row excludes it", ComesWarning)
                estimate = self._estimate(estimate_class_prior, label_names=names)
            return Knowledge(
                np.asarray(estimate.class_prior), class_prior_error=prior_error(estimate)
            )
        prior = per_label(self.given.class_prior, "class_prior", names)
        prior[~S.any(axis=0)] = 0
        warn_of_impossible_prior(prior, S, names)
        return Knowledge(prior, class_prior_error=prior_error(self.given.class_prior))

    def _find_flip_rate(self, method: Method) -> Knowledge:
        """Return the flip rate given, estimated, or implied by the class prior."""
        S, given = self.candidates.matrix, self.given
        if isinstance(given.flip_rate, str):
            if given.flip_rate != "class_prior":
                raise ComesError(
                    "flip_rate must be numbers in [0, 1), 'class_prior' or None; got "
                    f"{given.flip_rate!r}."
                )
            prior = self._find_class_prior()
            return replace(prior, flip_rate=flip_rate_from_prior(prior.class_prior, S))
        if given.flip_rate is None:
            rate = self._estimate(estimate_flip_rate)
        else:
            rate = per_label(given.flip_rate, "flip_rate", self.candidates.label_names)
            rate = np.minimum(rate, MAX_RATE)
        if method.has_zero:
            return Knowledge(flip_rate=rate)
        if given.class_prior is not None:
            return replace(self._find_class_prior(), flip_rate=rate)
        excluded_share = 1 - S.mean(axis=0)
        return Knowledge(np.maximum(1 - excluded_share / (1 - rate), 0), rate)

    def _estimate(self, estimate: Callable[..., Any], **options: Any) -> Any:
        """Return what one of the estimators of `comes.priors` finds on these rows."""
        S = self.candidates.matrix
        return estimate(self.X, S, random_state=self.seed, is_scaled=self.is_scaled, **options)


def _list_methods(condition: Callable[[Method], bool]) -> str:
    """Return the names of the methods with a variant that meets the condition."""
    names = (n for n, f in METHODS.items() if any(map(condition, f.variants.values())))
    return " or ".join(repr(name) for name in names)
