"""Training loops for any ``risk(scores, candidates)``: one model, or many at once."""

from comes.training.checkpoints import Checkpoint
from comes.training.gradients import add_gradient
from comes.training.loop import (
    OPTIMIZERS,
    History,
    MakeOptimizer,
    Risk,
    Rows,
    make_optimizer,
    predict_scores,
    seeded,
    train,
)
from comes.training.pixels import AUGMENTATIONS, PixelRows
from comes.training.processes import (
    count_processes,
    join_processes,
    leave_processes,
    of_all_processes,
    of_each_process,
    process_number,
)
from comes.training.proximal import ProximalGradient
from comes.training.rows import SparseRows, choose_device, to_device
from comes.training.together import train_together

__all__ = [
    "AUGMENTATIONS",
    "OPTIMIZERS",
    "Checkpoint",
    "History",
    "MakeOptimizer",
    "PixelRows",
    "ProximalGradient",
    "Risk",
    "Rows",
    "SparseRows",
    "add_gradient",
    "choose_device",
    "count_processes",
    "join_processes",
    "leave_processes",
    "make_optimizer",
    "of_all_processes",
    "of_each_process",
    "predict_scores",
    "process_number",
    "seeded",
    "to_device",
    "train",
    "train_together",
]
