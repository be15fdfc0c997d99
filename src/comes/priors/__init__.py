"""What is estimated before training: class priors, rates of answers, flip rates, transitions.

`PRIOR_METHODS` names the estimators of class priors; `MAX_RATE` is the largest flip rate;
`TO_FILL_IN` the column of a table of class priors for what is known.
"""

from comes.priors.answer_counts import AnswerCounts
from comes.priors.answer_rates import RatesEstimate, estimate_answer_rates
from comes.priors.class_prior import PRIOR_METHODS, ClassPriorEstimate, estimate_class_prior
from comes.priors.clean_sample import (
    CleanSample,
    count_answer_rates,
    sharpen_prior,
    sharpen_rates,
)
from comes.priors.evidence import gradient_error
from comes.priors.flip_rates import MAX_RATE, estimate_flip_rate, flip_rate_from_prior
from comes.priors.found_priors import fill_class_prior, find_class_prior
from comes.priors.pooled_rates import pool_rates
from comes.priors.prior_tables import (
    TO_FILL_IN,
    prior_table,
    read_prior_estimate,
    read_priors,
)
from comes.priors.transition import estimate_transition
from comes.priors.true_priors import add_prior_noise, count_class_prior

__all__ = [
    "MAX_RATE",
    "PRIOR_METHODS",
    "TO_FILL_IN",
    "AnswerCounts",
    "ClassPriorEstimate",
    "CleanSample",
    "RatesEstimate",
    "add_prior_noise",
    "count_answer_rates",
    "count_class_prior",
    "estimate_answer_rates",
    "estimate_class_prior",
    "estimate_flip_rate",
    "estimate_transition",
    "fill_class_prior",
    "find_class_prior",
    "flip_rate_from_prior",
    "gradient_error",
    "pool_rates",
    "prior_table",
    "read_prior_estimate",
    "read_priors",
    "sharpen_prior",
    "sharpen_rates",
]
