"""A training on disk after every epoch, to go on from after a crash with the same result."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from comes.errors import ComesError, first_line
from comes.files import replacing_file


@dataclass(frozen=True)
class Checkpoint:
    """A file that holds the state of one training.

    Parameters
    ----------
    path : Path
        Written by rename, so that a crash leaves the one before.
    fingerprint : str
        What decides the training; a file with another one is refused.
    """

    path: Path
    fingerprint: str

    def read(self, n_processes: int = 1) -> dict[str, Any] | None:
        """Return the state to go on from, or None if there is none."""
        if not self.path.exists():
            return None
        try:
            state: dict[str, Any] = torch.load(self.path, map_location="cpu", weights_only=True)
            fingerprint = state.pop("fingerprint")
        except Exception as error:  # torch.load raises whatever pickle meets
            raise ComesError(
                f"{self.path} is no checkpoint, or a damaged one ({first_line(error)}). Delete it "
                "to start anew."
            ) from None
        if fingerprint != self.fingerprint:
            raise ComesError(
                f"{self.path} belongs to another training: other data, settings or weights. Delete "
                "it to start anew, or choose another name for this one."
            )
        if len(state["random"]) != n_processes:
            raise ComesError(
                f"{self.path} was written by {len(state['random'])} processes; start as many, or "
                "delete it to start anew."
            )
        return state

    def write(self, state: dict[str, Any]) -> None:
        """Keep the state, in the place of an earlier one."""
        with replacing_file(self.path) as path, path.open("wb") as file:
            torch.save({**state, "fingerprint": self.fingerprint}, file)
