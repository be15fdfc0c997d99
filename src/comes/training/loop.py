"""One training loop for any ``risk(scores, targets)``.

An epoch shuffles the rows and splits them into batches of equal size, give or take a row. A step
computes the scores of a batch and the risk of the whole batch, and moves the weights against its
gradient. Rows and targets stay on the device; a batch is an index into them. Torch's global random
state is left as it was, and the same seed gives the same weights.

A row of weight 2 is drawn once per epoch, like any other. In the risk of its batch it counts as two
rows, and the batch counts by its mean weight over that of all rows: the gradient is that of the
sum of w_i l_i over the batch, divided by the size of the batch and the mean weight of all rows.
(For a risk that is no mean over rows, such as one with the batch's own n_j, batches are reweighted
in the same way.) So the objective is that of a repeated row; batches, steps and dropout are not.
"""

import math
import time
import warnings
from collections.abc import Callable, Generator, Iterable
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from comes.errors import ComesError, ComesWarning
from comes.files import defer_from_here, no_longer_defer
from comes.progress import progress_bar
from comes.risks.checks import NotFiniteError
from comes.training.checkpoint import Checkpoint
from comes.training.gradients import Risk, add_gradient
from comes.training.label_chunks import LabelChunks
from comes.training.options import History, TrainedEpoch, TrainOptions, Validation
from comes.training.pixels import PixelRows, mix_pairs
from comes.training.processes import (
    count_processes,
    gather_objects,
    gather_rows,
    process_number,
    take_share,
)
from comes.training.rows import Groups, SparseRows, StreamedRows, TargetRows
from comes.training.seeding import get_random_state, seed_torch, seeded, set_random_state
from comes.training.speed import GraphedStep, fastest_convolutions, few_threads, kept_memory

Rows = Tensor | SparseRows | PixelRows  # the features that a model can be trained on


def train(
    model: nn.Module,
    X: Rows | StreamedRows,
    targets: TargetRows | None,
    risk: Risk,
    options: TrainOptions,
    *,
    sample_weight: Tensor | None = None,
    validation: Validation | None = None,
    checkpoint: Checkpoint | None = None,
    distributed: bool = False,
) -> History:
    """Minimise a risk over the weights of a model, in place.

    Parameters
    ----------
    model : module
        Maps rows of X to scores of shape (rows, n_labels); on the device of X.
    X : float tensor of shape (n_samples, n_features)
    targets : tensor of shape (n_samples, n_labels)
        Such as a bool tensor of candidates. None for rows of a stream, which bring them along.
    risk : callable (scores, targets) -> scalar tensor
        Called on batches; a `comes.risks` module or a function of your own.
    options : TrainOptions
    sample_weight : float tensor of shape (n_samples,), optional
        How much every row counts. The risk gets those of a batch as its third argument, and is
        multiplied by their mean over the mean of all rows.
    validation : Validation, optional
        Scores the weights after every epoch; the model ends with the best.
    checkpoint : Checkpoint, optional
        Keeps the state on disk, as the option ``checkpoint`` of an estimator does; if it holds one,
        training goes on from there, in the same number of processes.
    distributed : bool
        Share every batch with the other processes of torch's process group, which all call this.
        The weights are those of one process to rounding, if the model treats rows one by one and
        draws no random numbers; what it draws depends on the seed and the number of the process.

    Returns
    -------
    history : History

    Examples
    --------
    >>> from comes.risks import BceRisk
    >>> from comes.training import make_optimizer
    >>> X = torch.randn(100, 5)
    >>> model = nn.Linear(5, 2)
    >>> options = TrainOptions(make_optimizer("sgd", learning_rate=0.1), epochs=10)
    >>> history = train(model, X, X[:, :2] > 0, BceRisk(), options)
    >>> history.risk[-1] < history.risk[0]
    True
    """
    n = len(X)
    if (targets is None) != isinstance(X, StreamedRows):
        raise ComesError("targets must be given; only rows of a stream bring them along.")
    if targets is not None and len(targets) != n:
        raise ComesError(f"X and targets must have the same rows; got {n}, {len(targets)}.")
    if sample_weight is not None and sample_weight.shape != (n,):
        shape = tuple(sample_weight.shape)
        raise ComesError(f"sample_weight must have shape {(n,)}; got {shape}.")
    if sample_weight is not None and isinstance(risk, LabelChunks):
        raise ComesError("chunks of labels take no sample_weight; repeat rows instead.")
    distributed = distributed and count_processes() > 1
    if distributed and process_number() > 0:
        options = replace(options, progress=False)
    training = Training(
        model, X, targets, risk, options, sample_weight, validation, checkpoint, distributed
    )
    model.train()
    threads = few_threads(model, X, options.batch_size)
    with seeded(options.seed, training.device), threads:
        training.resume()
        if training.is_enough:
            options = replace(options, epochs=len(training.risks))
        (history,) = run_epochs(
            training.run_epoch, training.optimizer, options, [training.risks], training.end_epoch
        )
    history = training.best.restore(history)
    check_weights(model.parameters(), history)
    model.eval()
    return history


class Training:
    """The steps and epochs of one training, and everything that they change."""

    def __init__(
        self,
        model: nn.Module,
        X: Rows | StreamedRows,
        targets: TargetRows | None,
        risk: Risk,
        options: TrainOptions,
        weight: Tensor | None = None,  # of every row, (n,)
        validation: Validation | None = None,
        checkpoint: Checkpoint | None = None,
        distributed: bool = False,
    ) -> None:
        self.model, self.X, self.targets, self.risk, self.options = model, X, targets, risk, options
        self.weight, self.mean_weight = weight, torch.ones(()) if weight is None else weight.mean()
        self.best = BestWeights(model, validation, distributed)
        self.checkpoint, self.distributed = checkpoint, distributed
        self.n_processes = count_processes() if distributed else 1
        self.device = X.device if targets is None else targets.device
        self.optimizer = options.optimizer(model.parameters())
        self.network = model
        if distributed and not isinstance(risk, LabelChunks):  # which adds up gradients itself
            device = next(model.parameters()).device
            devices = [device] if device.type == "cuda" else None
            self.network = DistributedDataParallel(model, devices)
        self.shuffle = torch.Generator().manual_seed(options.seed)
        self.risks: list[float] = []  # of the epochs that are done
        self.is_enough = False  # early stopping has ended the training
        self.resumed: tuple[int, Tensor] | None = None  # steps of an epoch, and their risk
        self.last_write = time.monotonic()  # of the checkpoint

        # Where features lie on the device, a step selects its own, and so can be recorded.
        self.select: Callable[[Tensor], Tensor] | None = None
        if isinstance(X, Tensor):
            self.select = partial(X.index_select, 0)  # faster than X[rows]
        elif isinstance(X, PixelRows) and X.decode() == "device":
            self.select = X.select_to_train
        self.step_on_rows = self.select_and_step
        is_recorded = options.graph and self.select is not None and options.part_size is None
        if is_recorded and self.device.type == "cuda" and not distributed:
            self.step_on_rows = GraphedStep(self.select_and_step, self.optimizer, self.device)

    def run_epoch(self) -> Tensor:
        """Train for one epoch, or for what a checkpoint left of it; return its mean risk, (1,)."""
        n, n_batches = len(self.X), math.ceil(len(self.X) / self.options.batch_size)
        shuffle = self.shuffle.get_state()
        rows, groups = self.draw_order()
        sizes = [n // n_batches + (i < n % n_batches) for i in range(n_batches)]
        n_done, total = self.resumed or (0, torch.zeros((), device=self.device))
        self.resumed = None
        left = rows[sum(sizes[:n_done]) :]
        with closing(self.take_steps(left, sizes[n_done:], groups)) as risks:
            for number, size in enumerate(sizes[n_done:], n_done + 1):
                if self.distributed:  # each draws its own, and the same again when it is resumed
                    seed = self.options.seed % 2**63, len(self.risks), number, process_number()
                    words = np.random.SeedSequence(seed).generate_state(1, np.uint64)
                    seed_torch(int(words[0]), self.device)
                total += next(risks) * (size / n)
                if number < n_batches:  # after the last, the epoch is kept
                    self.keep_state(shuffle, number, total)
        return total[None]

    def draw_order(self) -> tuple[Tensor, Groups]:
        """Return the rows in a random order; of a stream also the groups of blocks in it."""
        if isinstance(self.X, StreamedRows):
            return self.X.draw_order(self.shuffle)
        return torch.randperm(len(self.X), generator=self.shuffle), ()

    def take_steps(self, rows: Tensor, sizes: list[int], groups: Groups) -> Generator[Tensor]:
        """Take a step on each batch of rows, which are in main memory; yield its risk."""
        batches, X, targets = rows.to(self.device).split(sizes), self.X, self.targets
        if self.select is not None:
            for batch in batches:
                yield self.step_on_rows(batch)
            return
        if isinstance(X, StreamedRows):
            loaded = X.batches(rows.split(sizes), groups, self.share)
        else:
            shares = [self.share(batch) for batch in rows.split(sizes)]
            features = (
                X.batches(shares, training=True)
                if isinstance(X, PixelRows)
                else map(X.__getitem__, shares)
            )
            assert targets is not None
            selected = (targets.index_select(0, batch) for batch in batches)
            loaded = zip(features, selected, strict=True)
        for (x, targets_of_batch), batch in zip(loaded, batches, strict=True):
            yield self.step(x, targets_of_batch, batch)

    def share(self, rows: Tensor) -> Tensor:
        """Return the rows of a batch that this process computes."""
        return take_share(rows) if self.distributed else rows

    def select_and_step(self, rows: Tensor) -> Tensor:
        """Take a step on rows whose features lie on the device; return the risk."""
        assert self.select is not None and self.targets is not None
        return self.step(self.select(self.share(rows)), self.targets.index_select(0, rows), rows)

    def step(self, x: Tensor, targets: Any, rows: Tensor) -> Tensor:
        """Move the weights against the gradient of the risk of a batch; return the risk.

        ``x`` are the features of the batch, or of the share of this process; targets and row
        numbers are those of the whole batch.
        """
        options = self.options
        self.optimizer.zero_grad()
        if options.mixes_pairs:
            x, targets = mix_pairs(x, self.share(targets))
            targets = gather_rows(targets, len(rows)) if self.distributed else targets
        weight: Tensor | None = None
        relative_weight: float | Tensor = 1.0
        if self.weight is not None:
            weight = self.weight.index_select(0, rows)
            # The risk divides by the total weight of its batch; together they divide by the mean
            # weight of all rows, so that a row counts the same whatever rows it is drawn with.
            relative_weight = weight.mean() / self.mean_weight

        def risk(scores: Tensor, targets: Any) -> Tensor:
            scores = gather_rows(scores, len(rows)) if self.distributed else scores
            return self.risk(scores, targets, *([] if weight is None else [weight]))

        value = add_gradient(
            self.network,
            x,
            targets,
            self.risk if isinstance(self.risk, LabelChunks) else risk,
            scale=options.risk_scale * relative_weight,
            part_size=options.part_size,
            precision=options.precision,
        )
        self.optimizer.step()
        return value * relative_weight

    def end_epoch(self) -> bool:
        """Validate, keep the state and call the callbacks; return whether to stop."""
        self.is_enough = self.best.judge_epoch()
        self.keep_state(self.shuffle.get_state())
        epoch, epochs, risk = len(self.risks), self.options.epochs, self.risks[-1]
        score = self.best.scores[-1] if self.best.scores else None
        done = TrainedEpoch(epoch, epochs, risk, score, self.model)
        stops = [callback(done) is True for callback in self.options.callbacks]
        return self.is_enough or any(stops)

    def keep_state(self, shuffle: Tensor, n_steps: int = 0, total: Tensor | None = None) -> None:
        """Write a checkpoint, if it is time: after some steps of the epoch of a random state."""
        checkpoint = self.checkpoint
        if checkpoint is None:
            return
        waited = time.monotonic() - self.last_write
        is_due = checkpoint.every is not None and waited >= checkpoint.every
        if not is_due and not (n_steps == 0 and checkpoint.at_ends):
            return
        self.last_write = time.monotonic()
        if self.distributed and process_number() > 0:
            return
        checkpoint.write(
            {
                "model": self.model.state_dict(),
                "optimiser": self.optimizer.state_dict(),
                "shuffle": shuffle,
                "best": self.best.state_dict(),
                "random": [get_random_state(self.device)],
                "risk": self.risks,
                "steps": n_steps,
                "total": torch.zeros(()) if total is None else total.cpu(),
                "is_enough": self.is_enough,
                "n_processes": self.n_processes,
            }
        )

    def resume(self) -> None:
        """Go on from the checkpoint, if it has a state."""
        checkpoint = self.checkpoint
        if checkpoint is None:
            return
        state = checkpoint.read(self.n_processes)
        # Earlier versions wrote between epochs alone, and no number of steps.
        progress = state and (len(state["risk"]), state.get("steps", 0))
        if self.distributed and len(set(gather_objects(progress))) > 1:
            raise ComesError(
                f"all processes must read the same checkpoint; {checkpoint.path} is not the same "
                "for all. Put it on a disk that they share."
            )
        if state is None:
            return
        self.model.load_state_dict(state["model"])
        rates = [group["lr"] for group in self.optimizer.param_groups]
        self.optimizer.load_state_dict(state["optimiser"])
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
            group["lr"] = rate  # of the first epoch, from which the others follow
        self.shuffle.set_state(state["shuffle"])
        self.best.load_state_dict(state["best"])
        set_random_state(state["random"][0], self.device)
        self.risks, self.is_enough = list(state["risk"]), state["is_enough"]
        if state.get("steps", 0):
            self.resumed = state["steps"], state["total"].to(self.device)


class BestWeights:
    """Early stopping: the weights with the best score so far; nothing without a validation."""

    def __init__(self, model: nn.Module, validation: Validation | None, distributed: bool) -> None:
        self.model, self.validation, self.distributed = model, validation, distributed
        self.scores: list[float] = []
        self.best, self.epoch, self.n_waited = math.inf, 0, 0
        self.weights: dict[str, Tensor] = {}

    def judge_epoch(self) -> bool:
        """Score the weights after an epoch; return whether to stop."""
        if self.validation is None:
            return False
        self.model.eval()
        score = float(self.validation.score())
        if self.distributed:  # every process decides as the first does
            score = float(gather_objects(score)[0])
        self.model.train()
        self.scores.append(score)
        self.n_waited = 0 if score < self.best else self.n_waited + 1
        if score <= self.best and math.isfinite(score):  # of equal scores the last
            self.best, self.epoch = score, len(self.scores)
            self.weights = {k: v.clone() for k, v in self.model.state_dict().items()}
        patience = self.validation.patience
        return patience is not None and self.n_waited >= patience

    def restore(self, history: History) -> History:
        """Give the model its best weights; return the history with the scores."""
        if not self.scores:
            return history
        if not self.weights:
            raise ComesError(
                "no epoch had a finite risk on the held-out rows: there may be too few of them, or "
                "none that exclude anything. Train without early stopping, or hold out more."
            )
        self.model.load_state_dict(self.weights)
        return replace(history, validation=self.scores, best_epoch=self.epoch)

    def state_dict(self) -> dict[str, Any]:
        """Return the state for a checkpoint."""
        best = self.best, self.epoch, self.n_waited
        return {"scores": self.scores, "best": best, "weights": self.weights}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from the state of a checkpoint."""
        self.scores, self.weights = state["scores"], state["weights"]
        self.best, self.epoch, self.n_waited = state["best"]


def run_epochs(
    run_epoch: Callable[[], Tensor],  # trains for one epoch; mean risk of each model, (n_models,)
    optimizer: torch.optim.Optimizer,
    options: TrainOptions,
    risks: list[list[float]],  # of each model, of the epochs that are done; new ones are appended
    end_epoch: Callable[[], bool] | None = None,  # returns whether to stop
) -> list[History]:
    """Run the epochs with their learning rates and a progress bar; Ctrl-C ends them."""
    rates = [float(group["lr"]) for group in optimizer.param_groups]
    started, is_interrupted = time.perf_counter(), False
    bar = progress_bar(options.epochs, options.description, unit="epoch", show=options.progress)
    with kept_memory(), fastest_convolutions(), bar as advance:
        try:
            no_longer_defer()
            for risk in risks[0]:
                advance(f"risk {risk:.4f}")
            for epoch in range(len(risks[0]), options.epochs):
                if options.cosine:
                    factor = 0.5 * (1 + math.cos(math.pi * epoch / options.epochs))
                    for group, rate in zip(optimizer.param_groups, rates, strict=True):
                        if isinstance(group["lr"], Tensor):  # on a device, for a CUDA graph
                            group["lr"].fill_(factor * rate)
                        else:
                            group["lr"] = factor * rate
                try:
                    new_risks = run_epoch().tolist()
                except NotFiniteError:  # a risk refuses the scores
                    new_risks = [math.nan] * len(risks)
                for risks_of_model, risk in zip(risks, new_risks, strict=True):
                    risks_of_model.append(check_finite(risk, epoch))
                advance(f"risk {risks[0][-1]:.4f}")
                if end_epoch is not None and end_epoch():
                    break
        except KeyboardInterrupt:
            if not options.return_on_interrupt:
                raise
            is_interrupted = True
            warnings.warn(
                f"Interrupted after {len(risks[-1])} of {options.epochs} epochs; "
                "the weights so far are kept.",
                ComesWarning,
                stacklevel=3,
            )
        finally:
            defer_from_here()  # whoever saves the weights may let signals raise again
    seconds = (time.perf_counter() - started) / len(risks)
    return [History(risk, seconds, is_interrupted) for risk in risks]


def check_finite(risk: float, epoch: int) -> float:
    """Return the risk if it is finite, else raise."""
    if not math.isfinite(risk):
        raise ComesError(
            f"the risk or the weights became {risk} in epoch {epoch + 1}. Lower the learning rate, "
            "scale the features, or use a corrected risk (an unbiased one has no lower bound)."
        )
    return risk


def check_weights(parameters: Iterable[nn.Parameter], history: History) -> None:
    """Raise if a weight is not finite, which a risk that ignores it would not show."""
    if not all(p.isfinite().all() for p in parameters):
        check_finite(math.nan, len(history.risk) - 1)


@torch.no_grad()
def predict_scores(
    model: nn.Module,
    X: Rows,
    batch_size: int | None = None,
    precision: torch.dtype | None = None,
) -> Tensor:
    """Return the scores of every row, on the device of X.

    Parameters
    ----------
    model : module
        Is put into evaluation mode.
    X : float tensor of shape (n_samples, n_features)
    batch_size : int, optional
        Rows at a time; by default 4096, and 256 pictures.
    precision : torch dtype, optional
        Run the model under autocast, for example in bfloat16.

    Returns
    -------
    scores : float tensor of shape (n_samples, n_labels)

    Examples
    --------
    >>> predict_scores(nn.Linear(5, 2), torch.randn(100, 5), batch_size=30).shape
    torch.Size([100, 2])
    """
    model.eval()
    rows = torch.arange(len(X), device=X.device if isinstance(X, Tensor) else "cpu")
    parts = rows.split(batch_size or (256 if isinstance(X, PixelRows) else 4096))
    batches = X.batches(parts) if isinstance(X, PixelRows) else (X[part] for part in parts)
    with torch.autocast(X.device.type, precision, enabled=precision is not None):
        return torch.cat([model(batch).float() for batch in batches])
