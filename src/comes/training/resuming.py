"""Resuming from a checkpoint: everything that a step changes, loaded and saved."""

import time
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from comes.errors import ComesError
from comes.training.best_weights import BestWeights
from comes.training.checkpoints import Checkpoint
from comes.training.processes import gather_objects, process_number
from comes.training.random_states import read_random_state
from comes.training.shared_random import SharedRandom


@dataclass(frozen=True)
class Done:
    """The part of a training that a checkpoint holds; empty for a new training."""

    risk: tuple[float, ...] = ()  # of each epoch
    random: list[Tensor] | None = None  # random state of a process that trains alone
    is_enough: bool = False  # early stopping has ended the training
    steps: int = 0  # of the epoch after these


class TrainingState:
    """Everything that a step changes, and the checkpoint that keeps it.

    The number of processes is not part of it: any number can go on from what another has written.
    """

    random: SharedRandom | None = None  # of a training in several processes

    def __init__(
        self,
        checkpoint: Checkpoint | None,
        model: nn.Module,
        optimiser: torch.optim.Optimizer,
        shuffle: torch.Generator,
        best: BestWeights,
        device: torch.device,
        is_shared: bool,
    ) -> None:
        self.checkpoint, self.model, self.optimiser = checkpoint, model, optimiser
        self.shuffle, self.best, self.device, self.is_shared = shuffle, best, device, is_shared
        self.risk: list[float] = []  # of the epochs that are done
        self._part = 0, torch.zeros((), device=device)  # steps of the next epoch, sum of risks
        self._shuffle_before = shuffle.get_state()  # at the start of the epoch
        self._last_write = time.monotonic()

    def resume(self) -> Done:
        """Load the state of the checkpoint, if it has one."""
        done = Done() if self.checkpoint is None else self._load(self.checkpoint)
        if self.is_shared and len(set(gather_objects((len(done.risk), done.steps)))) > 1:
            assert self.checkpoint is not None
            raise ComesError(
                f"all processes must read the same checkpoint; {self.checkpoint.path} is not the "
                "same for all. Put it on a disk that they share."
            )
        return done

    def _load(self, checkpoint: Checkpoint) -> Done:
        """Load the state of a checkpoint; one of an earlier version was written between epochs."""
        state = checkpoint.read()
        if state is None:
            return Done()
        rates = [group["lr"] for group in self.optimiser.param_groups]
        self.model.load_state_dict(state["model"])
        self.optimiser.load_state_dict(state["optimiser"])
        for group, rate in zip(self.optimiser.param_groups, rates, strict=True):
            group["lr"] = rate  # of the first epoch, from which the others follow
        self.shuffle.set_state(state["shuffle"])
        self.best.load_state_dict(state["best"])
        self.risk, steps = list(state["risk"]), state.get("steps", 0)
        if steps:
            self._part = steps, state["total"].to(self.device)
        return Done(tuple(self.risk), state["random"][0], state["is_enough"], steps)

    def begin_epoch(self) -> tuple[int, Tensor]:
        """Return how many steps of the epoch are done already, and the sum of their risks."""
        self._shuffle_before = self.shuffle.get_state()
        part, self._part = self._part, (0, torch.zeros((), device=self.device))
        return part

    def finish_step(self, n_steps: int, total: Tensor) -> None:
        """Keep the state within an epoch, if the last time is long ago."""
        if self.checkpoint is not None and self._is_time(self.checkpoint):
            self._keep(self.checkpoint, self._shuffle_before, n_steps, total)

    def finish_epoch(self, risk: list[float]) -> bool:
        """Judge the weights and keep the state; return whether to stop."""
        self.risk = list(risk)
        is_enough = self.best.judge_epoch()
        checkpoint = self.checkpoint
        if checkpoint is not None and (checkpoint.at_ends or self._is_time(checkpoint)):
            nothing = torch.zeros(())
            self._keep(checkpoint, self.shuffle.get_state(), 0, nothing, is_enough)
        return is_enough

    def _is_time(self, checkpoint: Checkpoint) -> bool:
        """Return whether the state was last kept long enough ago."""
        every = checkpoint.every
        return every is not None and time.monotonic() - self._last_write >= every

    def _keep(
        self,
        checkpoint: Checkpoint,
        shuffle: Tensor,
        n_steps: int,
        total: Tensor,
        is_enough: bool = False,
    ) -> None:
        """Write the state after some steps of the epoch that ``shuffle`` starts."""
        self._last_write = time.monotonic()
        if self.is_shared and process_number() != 0:
            return
        state = {
            "model": self.model.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "shuffle": shuffle,
            "best": self.best.state_dict(),
            "random": [read_random_state(self.device) if not self.random else self.random.state],
            "risk": self.risk,
            "steps": n_steps,
            "total": total.cpu(),
            "is_enough": is_enough,
        }
        checkpoint.write(state)
