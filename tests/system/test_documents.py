"""Every block of code in the documents runs, and consoles print what the pages show."""

from pathlib import Path

import pytest

import fill
from comes.datasets import open_dataset
from comes.experiment.tasks import risk_floor
from comes.metrics import METRICS
from comes.workflows.demo import write_tickets
from command_line import Run, command_runner
from console_blocks import assert_same_outputs
from document_blocks import BLOCK, run_blocks
from result_tables import read_experiment

ROOT = Path(__file__).parents[2]
DOCUMENTS = [
    path
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
    if BLOCK.search(path.read_text(encoding="utf-8"))
]
run = pytest.fixture(command_runner)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.stem)
def test_examples_run(
    run: Run, document: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_tickets("tickets.csv", n=800)  # for pages whose console would write it
    run_blocks(document, run)


def test_commands_print_what_the_first_page_shows(tmp_path: Path) -> None:
    """The README shows some of these commands with the same output."""
    page = ROOT / "docs" / "start" / "first-model.md"
    assert_same_outputs(page.read_text(encoding="utf-8"), tmp_path)


def test_a_metric_without_results_leaves_the_tables_as_they_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(METRICS, "new_metric", METRICS["hamming_loss"])
    assert fill.main(["--check"]) == 0


@pytest.mark.needs("pml")
def test_the_yeast_sets_do_not_reach_the_flood() -> None:
    for result in read_experiment("paper"):
        if result.spec.method == "comes-rl" and result.spec.data.name.startswith("Yeast"):
            relevant = open_dataset(result.spec.data.name).known_relevant()
            least = min(min(repeat.risk) for repeat in result.repeats)
            assert least > 0.99 * risk_floor(relevant)
