"""Training loops for any ``risk(scores, candidates)``: one model, or many at once.

Constants: `OPTIMIZERS` and `AUGMENTATIONS` are the names that `make_optimizer` and `PixelRows`
know. Types: a `Risk` maps scores and candidates to a scalar tensor, `Rows` are the features that a
model can be trained on, a `MakeOptimizer` maps parameters to a torch optimiser, a `Callback` maps
a `TrainedEpoch` to True where the training is to end.
"""

from comes.training.acceleration import largest_curvature
from comes.training.batch_sources import Rows
from comes.training.checkpoints import Checkpoint
from comes.training.gradients import Risk, add_gradient
from comes.training.history import History
from comes.training.label_chunks import LabelChunks
from comes.training.loop import predict_scores, train
from comes.training.micro_batches import PartOfRisk, split_risk
from comes.training.optimizers import OPTIMIZERS, MakeOptimizer, make_optimizer
from comes.training.pixels import AUGMENTATIONS, PixelRows
from comes.training.processes import (
    broadcast_from_first,
    count_processes,
    gather_objects,
    join_processes,
    leave_processes,
    of_all_processes,
    process_number,
)
from comes.training.proximal import ProximalGradient
from comes.training.random_states import seeded
from comes.training.row_order import BlockOrder
from comes.training.rows import SparseRows, becomes_dense, choose_device, to_device
from comes.training.said_rows import SparseTargetRows
from comes.training.soft_targets import fit_soft_targets
from comes.training.stacked import Trainee, train_together
from comes.training.streamed_rows import StreamedRows
from comes.training.train_options import TrainOptions, Validation
from comes.training.watching import Callback, TrainedEpoch, describe_epoch

__all__ = [
    "AUGMENTATIONS",
    "OPTIMIZERS",
    "BlockOrder",
    "Callback",
    "Checkpoint",
    "History",
    "LabelChunks",
    "MakeOptimizer",
    "PartOfRisk",
    "PixelRows",
    "ProximalGradient",
    "Risk",
    "Rows",
    "SparseRows",
    "SparseTargetRows",
    "StreamedRows",
    "TrainOptions",
    "TrainedEpoch",
    "Trainee",
    "Validation",
    "add_gradient",
    "becomes_dense",
    "broadcast_from_first",
    "choose_device",
    "count_processes",
    "describe_epoch",
    "fit_soft_targets",
    "gather_objects",
    "join_processes",
    "largest_curvature",
    "leave_processes",
    "make_optimizer",
    "of_all_processes",
    "predict_scores",
    "process_number",
    "seeded",
    "split_risk",
    "to_device",
    "train",
    "train_together",
]
