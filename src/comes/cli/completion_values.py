"""What shells offer for the values of options and arguments, without importing torch or pandas."""

from collections.abc import Callable
from glob import escape, glob
from pathlib import Path

Completer = Callable[[str], list[str]]
# The keys of comes.methods.METHODS, which takes long to import.
METHOD_NAMES = (
    *("comes-hl", "comes-rl", "bce", "ccmn", "gdf", "ctl", "mlcl"),
    *("comes-hl-unbiased", "comrank", "likelihood"),
)


def offer(*values: str) -> Completer:
    """Return what completes to one of these values."""

    def complete(incomplete: str) -> list[str]:
        return [value for value in values if value.startswith(incomplete)]

    return complete


complete_method = offer(*METHOD_NAMES, "auto")
complete_network = offer("mlp", "low_rank", "linear")
complete_backbone = offer("resnet50", "timm:", "torchvision:")
complete_device = offer("auto", "cpu", "cuda")


def complete_data(incomplete: str) -> list[str]:
    """Return the data sets by name that fit, and files; nothing lets the shell offer files."""
    if not incomplete or "/" in incomplete:
        return []
    from comes.datasets import KNOWN

    names = [
        f"{known.name}:{split}" if split else known.name
        for known in KNOWN.values()
        for split in known.rows
    ]
    found = [name for name in names if name.startswith(incomplete)]
    if not found:
        return []
    files = (path + "/" * Path(path).is_dir() for path in glob(f"{escape(incomplete)}*"))
    return [*found, *sorted(files)]
