"""Every stored result: read, written, reported, and drawn in a whole report."""

from pathlib import Path

from comes.experiment.results import read_results, write_result
from comes.report.experiment_page import write_report
from results import ERRORS, STORED, check_new_metric, make_results, read_folder, write_results


def test_every_stored_result_is_read_and_written_byte_for_byte(tmp_path: Path) -> None:
    paths = sorted(STORED.rglob("result.json"))
    assert len(paths) >= 468
    for path in paths:
        (result,) = read_results([path.parent])
        assert result.spec.key == path.parent.name
        assert write_result(result, tmp_path).read_bytes() == path.read_bytes(), path


def test_a_new_metric_is_an_empty_cell_of_every_stored_result() -> None:
    check_new_metric(read_results([STORED]), "last")


def test_a_report_with_sweeps_is_a_function_of_the_results(report: Path, tmp_path: Path) -> None:
    results = read_results([write_results(tmp_path / "runs", make_results())])
    write_report(results, tmp_path / "other", ERRORS)
    assert read_folder(tmp_path / "other") == read_folder(report)
