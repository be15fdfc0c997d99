"""How much memory a task needs, where the system says so."""

import re
from contextlib import suppress
from pathlib import Path

import torch

STATUS, CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")
MIB = 2**20


def forget_peaks() -> None:
    """Let the peaks start anew: a process may have run other tasks."""
    with suppress(OSError):
        CLEAR.write_text("5")  # Linux: the peak becomes what is used now
    if torch.cuda.is_initialized():
        torch.cuda.reset_peak_memory_stats()


def read_peak() -> float | None:
    """Return the greatest memory of this process, in MiB; None where the system does not tell."""
    try:
        found = re.search(r"^VmHWM:\s+(\d+) kB", STATUS.read_text(), re.MULTILINE)
    except OSError:
        return None
    return None if found is None else round(int(found[1]) / 1024, 1)


def read_device_peak(device: str) -> float | None:
    """Return the greatest memory of tensors on a GPU, in MiB; None on a CPU."""
    if not device.startswith("cuda"):
        return None
    return round(torch.cuda.max_memory_allocated() / MIB, 1)
