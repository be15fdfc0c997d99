"""Training: one loop for any ``risk(scores, targets)``, and parts of it for a loop of your own.

`train` runs the loop; `TrainOptions`, `Validation` and `Checkpoint` say how. Data that do not fit
into memory come as `StreamedRows` in a `BlockOrder`, very many labels as `SparseTargetRows` with a
risk in `LabelChunks`. `add_gradient`, `split_risk` and `of_all_processes` keep a risk exact where
others take a batch apart.
"""

from comes.training.checkpoint import Checkpoint
from comes.training.gradients import add_gradient, split_risk
from comes.training.label_chunks import LabelChunks
from comes.training.loop import predict_scores, train
from comes.training.options import History, TrainedEpoch, TrainOptions, Validation, make_optimizer
from comes.training.processes import of_all_processes
from comes.training.rows import BlockOrder, SparseTargetRows, StreamedRows

__all__ = [
    "BlockOrder",
    "Checkpoint",
    "History",
    "LabelChunks",
    "SparseTargetRows",
    "StreamedRows",
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
