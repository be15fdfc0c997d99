"""Training: one loop for any ``risk(scores, targets)``, and parts of it for a loop of your own.

`train` runs the loop as `TrainOptions` and a `Validation` say. `add_gradient`, `split_risk` and
`of_all_processes` keep a risk exact where others take a batch apart.
"""

from comes.training.gradients import add_gradient, split_risk
from comes.training.loop import predict_scores, train
from comes.training.options import History, TrainedEpoch, TrainOptions, Validation, make_optimizer
from comes.training.processes import of_all_processes

__all__ = [
    "History",
    "TrainOptions",
    "TrainedEpoch",
    "Validation",
    "add_gradient",
    "make_optimizer",
    "of_all_processes",
    "predict_scores",
    "split_risk",
    "train",
]
