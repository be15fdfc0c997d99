"""The job that reports results; it needs no torch."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from comes.files import refuse_inputs
from comes.report import write_report
from comes.results import Result, read_errors, read_results


@dataclass(frozen=True)
class WrittenReport:
    """A report that was written.

    Attributes
    ----------
    page : Path
    results : list of Result
    errors : list of str
        A line for every task that failed.

    Examples
    --------
    >>> WrittenReport(Path("report/index.html"), [], ["bce on scenes: out of memory"]).errors
    ['bce on scenes: out of memory']
    """

    page: Path
    results: list[Result]
    errors: list[str]


def report_results(folders: Sequence[str | Path], output: str | Path) -> WrittenReport:
    """Write the tables, the plots and the page of the results in folders.

    Parameters
    ----------
    folders : sequence of paths
        Folders that `run_experiment` wrote.
    output : path
        Folder of the report.

    Returns
    -------
    written : WrittenReport

    Examples
    --------
    >>> import tempfile
    >>> home = Path(tempfile.mkdtemp())
    >>> report_results([home], home / "report")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    comes.errors.ComesError: ... holds no result.json: give a folder that `comes bench` wrote.
    """
    refuse_inputs(output, *folders)
    results, errors = read_results(folders), read_errors(folders)
    return WrittenReport(write_report(results, output, errors), results, errors)
