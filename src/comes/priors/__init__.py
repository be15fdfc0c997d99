"""What is estimated before training: class priors, rates of answers, flip rates, transitions."""

from comes.priors.answer_rates import RatesEstimate, estimate_answer_rates
from comes.priors.class_prior import (
    ClassPriorEstimate,
    count_class_prior,
    estimate_class_prior,
    fill_class_prior,
    prior_table,
    read_priors,
)
from comes.priors.clean_sample import CleanSample
from comes.priors.noise import estimate_flip_rate, estimate_transition

__all__ = [
    "ClassPriorEstimate",
    "CleanSample",
    "RatesEstimate",
    "count_class_prior",
    "estimate_answer_rates",
    "estimate_class_prior",
    "estimate_flip_rate",
    "estimate_transition",
    "fill_class_prior",
    "prior_table",
    "read_priors",
]
