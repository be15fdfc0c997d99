"""The state of a training on disk, so that a resumed training ends with the same weights."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from warnings import warn

import torch
from torch import nn

from comes.errors import ComesError, ComesWarning, first_line
from comes.files import replacing_file


@dataclass(frozen=True)
class Checkpoint:
    """A file that holds the state of one training, to be resumed by as many processes."""

    path: Path  # replaced by a rename, so that a crash leaves the state before
    fingerprint: str  # a hash of data and settings; a file with another one is refused
    every: float | None = 300.0  # seconds after which the state is also kept within an epoch
    at_ends: bool = True  # keep the state after every epoch, too; False is for short epochs

    def read(self, n_processes: int) -> dict[str, Any] | None:
        """Return the state, or None if there is no file; refuse that of another training."""
        if not self.path.exists():
            return None
        try:
            state: dict[str, Any] = torch.load(self.path, map_location="cpu", weights_only=True)
            fingerprint = state.pop("fingerprint")
        except Exception as error:  # torch.load raises whatever pickle meets
            raise ComesError(
                f"{self.path} is not a checkpoint, or is damaged ({first_line(error)}). Delete it "
                "to start over."
            ) from None
        if fingerprint != self.fingerprint:
            raise ComesError(
                f"{self.path} belongs to another training, with other data, settings, weights or "
                "random_state (None draws a new one). "
                "Delete it to start over, or choose another file for this training."
            )
        written_by = state.get("n_processes", 1)
        if written_by != n_processes:
            raise ComesError(
                f"{self.path} was written by a training in {written_by} processes; got "
                f"{n_processes}. Start as many, or delete it to start over."
            )
        return state

    def write(self, state: dict[str, Any]) -> None:
        """Write the state, replacing an earlier one; warn if that fails, as training can go on."""
        try:
            with replacing_file(self.path) as path, path.open("wb") as file:
                torch.save({**state, "fingerprint": self.fingerprint}, file)
        except (ComesError, RuntimeError) as error:  # torch's own, on a full disk
            warn(
                f"{first_line(error)} The state is not kept, and training goes on.",
                ComesWarning,
                stacklevel=2,
            )


def weights_hash(module: nn.Module) -> str:
    """Return a hash of all weights, and of the layers, which tell the strides of a ResNet."""
    found = hashlib.sha256(repr(module).encode())
    for name, tensor in module.state_dict().items():
        found.update(name.encode())
        found.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data)
    return found.hexdigest()
