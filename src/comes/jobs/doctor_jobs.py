"""The job that looks whether comes can work here: packages, devices, folders, extras."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from comes.jobs.doctor_findings import Extra, Folder, Problem
from comes.jobs.installed_packages import find_extras, find_package_problems, find_versions
from comes.jobs.machine_facts import describe_devices, describe_folders


@dataclass(frozen=True)
class Installation:
    """What is installed, where, and what is wrong with it.

    Parameters
    ----------
    problems : tuple of Problem
        What is broken (``what``), and what to do about it (``cure``).
    versions : mapping of str to str or None
        Of comes, Python, the system, and the packages that comes needs; None where one is missing.
    devices : mapping of str to any
        cores, threads, gpus, mps, and the device that "auto" takes.
    folders : tuple of Folder
        ``$COMES_DATA``, if it is set, and the cache.
    datasets : tuple of str or None
        The data sets by name that are at hand; None if problems keep them from being looked for.
    extras : tuple of Extra
        Each with what it gives, and which of its packages are missing or too old.

    Examples
    --------
    >>> Installation((), {"comes": "1.0.0"}, {}, (), (), ()).is_healthy
    True
    """

    problems: tuple[Problem, ...]
    versions: Mapping[str, str | None]
    devices: Mapping[str, Any]
    folders: tuple[Folder, ...]
    datasets: tuple[str, ...] | None
    extras: tuple[Extra, ...]

    @property
    def is_healthy(self) -> bool:
        """Whether nothing is broken; extras may be missing."""
        return not self.problems

    def as_dict(self) -> dict[str, Any]:
        """Return all of it as json can hold it."""
        values = asdict(self) | {"versions": dict(self.versions), "devices": dict(self.devices)}
        values["extras"] = [
            asdict(extra) | {"installed": not extra.missing, "command": extra.command}
            for extra in self.extras
        ]
        return values


def check_installation() -> Installation:
    """Look at what is installed, what it can compute on and where data lies; change nothing.

    Returns
    -------
    installation : Installation

    Examples
    --------
    >>> import comes
    >>> found = check_installation()
    >>> found.versions["comes"] == comes.__version__
    True
    >>> [extra.command for extra in found.extras if extra.name == "chem"]
    ["pip install 'comes[chem]'"]
    """
    broken = find_package_problems()
    folders, misplaced = describe_folders()
    devices, unseen = describe_devices()
    return Installation(
        (*broken, *misplaced, *unseen),
        find_versions(),
        devices,
        tuple(folders),
        None if broken or misplaced else _find_datasets(),
        tuple(find_extras()),
    )


def _find_datasets() -> tuple[str, ...]:
    from comes.jobs.data_jobs import list_datasets

    return tuple(row["name"] for row in list_datasets() if row["at_hand"])
