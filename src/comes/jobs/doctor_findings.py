"""What `check_installation` finds: problems with their cures, extras and folders."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Problem:
    """Something that is broken, and what to do about it."""

    what: str
    cure: str


@dataclass(frozen=True)
class Extra:
    """A group of packages that are installed on demand."""

    name: str
    gives: str
    missing: tuple[str, ...]  # requirements that nothing installed meets

    @property
    def command(self) -> str:
        """What installs it."""
        return f"pip install 'comes[{self.name}]'"


@dataclass(frozen=True)
class Folder:
    """A folder that comes reads from or writes to."""

    name: str
    path: str  # ~ in place of the home of the user
    exists: bool
    is_writable: bool  # or can be made
    free_gigabytes: float | None


def show_path(path: Path) -> str:
    """Return a path without the name of the user."""
    try:
        return str("~" / path.relative_to(Path.home()))
    except (ValueError, RuntimeError):
        return str(path)
