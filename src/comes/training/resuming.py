"""Resuming from a checkpoint: everything that an epoch changes, loaded and saved."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from comes.training.best_weights import BestWeights
from comes.training.checkpoints import Checkpoint
from comes.training.processes import count_processes, of_each_process, process_number
from comes.training.random_states import read_random_state


@dataclass(frozen=True)
class Done:
    """The part of a training that a checkpoint holds; empty for a new training."""

    risk: tuple[float, ...] = ()  # of each epoch
    random: list[Tensor] | None = None  # random state of this process
    is_enough: bool = False  # early stopping has ended the training


@dataclass(frozen=True)
class TrainingState:
    """Everything that an epoch changes, and the checkpoint that keeps it."""

    checkpoint: Checkpoint | None
    model: nn.Module
    optimiser: torch.optim.Optimizer
    shuffle: torch.Generator
    best: BestWeights
    device: torch.device
    is_shared: bool

    def resume(self) -> Done:
        """Load the state of the checkpoint, if it has one."""
        if self.checkpoint is None:
            return Done()
        state = self.checkpoint.read(count_processes() if self.is_shared else 1)
        if state is None:
            return Done()
        rates = [group["lr"] for group in self.optimiser.param_groups]
        self.model.load_state_dict(state["model"])
        self.optimiser.load_state_dict(state["optimiser"])
        for group, rate in zip(self.optimiser.param_groups, rates, strict=True):
            group["lr"] = rate  # of the first epoch, from which the others follow
        self.shuffle.set_state(state["shuffle"])
        self.best.load_state_dict(state["best"])
        random = state["random"][process_number() if self.is_shared else 0]
        return Done(tuple(state["risk"]), random, state["is_enough"])

    def finish_epoch(self, risk: list[float]) -> bool:
        """Judge the weights and keep the state; return whether to stop."""
        is_enough = self.best.judge_epoch()
        if self.checkpoint is not None:
            own = read_random_state(self.device)
            state = {
                "model": self.model.state_dict(),
                "optimiser": self.optimiser.state_dict(),
                "shuffle": self.shuffle.get_state(),
                "best": self.best.state_dict(),
                "random": of_each_process(own) if self.is_shared else [own],
                "risk": risk,
                "is_enough": is_enough,
            }
            if not self.is_shared or process_number() == 0:
                self.checkpoint.write(state)
        return is_enough
