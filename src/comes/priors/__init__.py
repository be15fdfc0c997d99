"""What is estimated from X and candidates before training."""

from comes.priors.class_prior import (
    ClassPriorEstimate,
    add_prior_noise,
    count_class_prior,
    estimate_class_prior,
    prior_table,
    read_priors,
)
from comes.priors.evidence import gradient_error
from comes.priors.flip_rates import MAX_RATE, estimate_flip_rate, flip_rate_from_prior
from comes.priors.transition import estimate_transition

__all__ = [
    "MAX_RATE",
    "ClassPriorEstimate",
    "add_prior_noise",
    "count_class_prior",
    "estimate_class_prior",
    "estimate_flip_rate",
    "estimate_transition",
    "flip_rate_from_prior",
    "gradient_error",
    "prior_table",
    "read_priors",
]
