"""Training loops for any ``risk(scores, candidates)``: one model, or many at once."""

from comes.training.loop import (
    OPTIMIZERS,
    History,
    MakeOptimizer,
    Risk,
    make_optimizer,
    predict_scores,
    seeded,
    train,
)
from comes.training.rows import SparseRows, choose_device, to_device
from comes.training.together import train_together

__all__ = [
    "OPTIMIZERS",
    "History",
    "MakeOptimizer",
    "Risk",
    "SparseRows",
    "choose_device",
    "make_optimizer",
    "predict_scores",
    "seeded",
    "to_device",
    "train",
    "train_together",
]
