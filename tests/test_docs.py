"""Documents that cannot rot: commands, options, methods and metrics are those of the code."""

import inspect
import json
import pydoc
import re
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

import claims
import fill
import result_tables
import run_examples
from comes.cli import app
from comes.cli.options import reading_options
from comes.methods import METHODS
from comes.metrics import METRICS
from command_line import Run, command_runner
from console_blocks import assert_same_outputs, find_commands, run_in_shell
from document_blocks import run_blocks
from result_tables import verdict
from run_examples import ORDER, PAGES, PICTURE, SCRIPTS, make_gallery, make_page, strip_page

ROOT = Path(__file__).parent.parent
FIRST_PAGE = "docs/start/first-model.md"
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
QUICK = (
    "docs/start/annotation.md",
    *("docs/explain/assumptions.md", "docs/explain/risks.md", "docs/explain/candidate-sets.md"),
    *("docs/guide/annotate.md", "docs/guide/own-loop.md", "docs/guide/recipes.md"),
    "docs/reference/metrics.md",
)
START = "<!-- table: benchmarks/start_time/seconds\nwhat | `{what}`\nseconds | {seconds:.3g}\n-->"
COMMANDS = get_command(app).commands  # type: ignore[attr-defined]
run = pytest.fixture(command_runner)


def read(document: str | Path) -> str:
    return (ROOT / document).read_text(encoding="utf-8")


@pytest.mark.parametrize("document", QUICK)
def test_quick_examples_run(
    run: Run, document: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run_blocks(ROOT / document, run)


def test_links_lead_to_files_and_names_to_code() -> None:
    """Dotted names lead to a package, a module or what it holds; paths to a file."""
    for document in DOCUMENTS:
        for target in re.findall(r"\]\(([^)#]+)\)", read(document)):
            assert target.startswith("http") or (document.parent / target).exists(), target
    text = "".join(map(read, DOCUMENTS))
    packages = "|".join(path.stem for path in (ROOT / "src" / "comes").iterdir())
    no_file = r"(?!csv|json|md|parquet|py|tex\b|toml)"
    names = set(re.findall(rf"`(?:comes\.)?((?:{packages})(?:\.{no_file}\w+)+)[`(]", text))
    assert "training.of_all_processes" in names
    for name in names:
        assert pydoc.locate(f"comes.{name}") is not None, name
    paths = set(re.findall(r"[` ]((?:docs|experiments|benchmarks)/[\w./-]+\.\w+)\b", text))
    assert "experiments/paper.toml" in paths
    for path in paths:
        assert (ROOT / path).exists(), path


def test_the_documented_commands_are_those_that_exist() -> None:
    text = read("docs/reference/cli.md")
    assert set(re.findall(r"^## comes (\S+)$", text, re.MULTILINE)) == set(COMMANDS)
    for name, command in COMMANDS.items():
        members: dict[str, Any] = getattr(command, "commands", {})
        for member in members:
            assert f"comes {name} {member}" in text or member == "show", (name, member)
        for words, one in [((name,), command), *(((name, m), c) for m, c in members.items())]:
            assert f"Example: comes {' '.join(words)}" in one.help, words
            options = {option for parameter in one.params for option in parameter.opts}
            quiet = words == ("annotate", "serve") or hasattr(one, "commands")
            assert "--json" in options or quiet, words


def test_every_reading_option_method_and_metric_is_documented() -> None:
    text = read("docs/reference/cli.md").partition("\n## Reading data\n")[2].partition("\n## ")[0]
    for name in {*inspect.signature(reading_options).parameters} - {"help_all"}:
        assert re.search(rf"--{name.replace('_', '-')}\b", text), name
    text = read("docs/explain/methods.md")
    for method, named in METHODS.items():
        variants = list(named.variants)
        first = f" `{variants[0]}`" if variants else ""
        assert f"| `{method}` |{first} |" in text
        for variant in variants:
            assert f"`{variant}`" in text, (method, variant)
    text = read("docs/reference/metrics.md")
    for metric in METRICS.values():
        assert f"| {metric.title} | {'↑' if metric.higher_is_better else '↓'} |" in text


def test_every_package_is_described_and_promised_something() -> None:
    packages = {p.stem for p in (ROOT / "src" / "comes").iterdir() if p.suffix in ("", ".py")}
    described = read("docs/develop/architecture.md")
    promised = re.findall(r"^\| (`.*`) \|", read("docs/develop/stability.md"), re.MULTILINE)
    for name in packages:
        if name[0] != "_":
            assert f"| `{name}` |" in described, name
            assert f"`{name}`" in ", ".join(promised).split(", "), name


# Consoles


def test_the_readme_shows_commands_of_the_first_page_with_the_same_output() -> None:
    first = iter(find_commands(read(FIRST_PAGE)))
    assert all(shown in first for shown in find_commands(read("README.md")))  # in this order
    pages = [str(path.relative_to(ROOT)) for path in DOCUMENTS if "```console" in read(path)]
    assert pages == ["README.md", FIRST_PAGE]  # those that are run


def test_a_console_is_run_and_compared(tmp_path: Path) -> None:
    page = "```console\n$ echo 0.50 \\\n  rows\n0.52 rows\n$ echo\n```\n"
    assert find_commands(page) == [("echo 0.50 \\\n  rows", "0.52 rows\n"), ("echo", "")]
    assert_same_outputs(page, tmp_path)
    for wrong in ("0.92 rows", "0.52 lines", "0.52 rows\nmore"):
        with pytest.raises(AssertionError):
            assert_same_outputs(page.replace("0.52 rows", wrong), tmp_path)


def test_a_failing_command_is_found_and_a_pipe_that_is_closed_early_is_none(tmp_path: Path) -> None:
    assert run_in_shell("yes | head -2", tmp_path) == "y\ny\n"
    for failing in ("false", "false | cat", "echo | false", "sh -c 'kill -PIPE $$'"):
        with pytest.raises(AssertionError, match=re.escape(failing)):
            run_in_shell(failing, tmp_path)


# Generated parts, and claims about results


def test_a_stale_table_is_found_and_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fresh = "Before.\n\n" + fill.fill(f"{START}\n<!-- end -->") + "\n\nAfter.\n"
    assert "| `comes --help` |" in fresh
    page = tmp_path / "page.md"
    page.write_text(fresh.replace("| `comes --help` | 0", "| `comes --help` | 9"))
    monkeypatch.setattr(fill, "ROOT", tmp_path)
    monkeypatch.setattr(fill, "DOCUMENTS", [page])
    monkeypatch.setattr(claims, "CLAIMS", ())
    assert fill.main(["--check"]) == 1
    assert "page.md is out of date: run make tables" in capsys.readouterr().out
    assert page.read_text() != fresh
    assert fill.main([]) == 0
    assert page.read_text() == fresh
    assert fill.main(["--check"]) == 0
    with pytest.raises(SystemExit, match=r"no table 'sweeps'.*'sweep'"):
        fill.fill("<!-- table: sweeps rows -->\n<!-- end -->")


def test_records_become_rows_by_templates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"set": "b", "n": 2, "at": {"x": 0.25, "y": [3, 4]}}, {"set": "a", "n": 1}]
    rows.append({"set": "b", "n": 4, "at": {"x": 0.75, "y": [5, 6]}})
    (tmp_path / "made" / "results").mkdir(parents=True)
    text = json.dumps({"rows": rows, "times": {"one": 0.1, "two": 0.2}})
    (tmp_path / "made" / "results" / "it.json").write_text(text)
    monkeypatch.setattr(result_tables, "ROOT", tmp_path)
    columns = "| {set}\nx | {at/x:.2f}\nn | {n:.0f}"
    assert fill.show_records(f"made/it/rows\n{columns}\nlast | {{at/y[1]}}")[1:] == [
        ["b", "0.25", "2", "4"],
        ["a", "", "1", ""],
        ["b", "0.75", "4", "6"],
    ]
    assert fill.show_records(f"made/it/rows by set\na = the first\nb = b\n{columns}") == [
        ["", "x", "n"],
        ["the first", "", "1"],
        ["b", "0.50", "3"],
    ]
    assert fill.show_records("made/it/times\nof | {name}\nms | {value*1000:.0f}") == [
        ["of", "ms"],
        ["one", "100"],
        ["two", "200"],
    ]


def test_tables_of_numbers_by_hand_and_wrong_claims_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.md"
    page.write_text("| method | 0.5 |\n\nA sentence\nwith 0.812.\n")
    for module in (fill, claims):
        monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(fill, "DOCUMENTS", [page])
    rows = ("A sentence with 0.812", "A sentence with 0.813")
    monkeypatch.setattr(claims, "CLAIMS", (lambda: claims.says("page.md", *rows),))
    assert fill.main(["--check"]) == 1
    printed = capsys.readouterr().out
    assert "page.md has a table of numbers that nothing fills: '| method | 0.5 |'" in printed
    assert "page.md is out of date: 'A sentence with 0.813'" in printed and "0.812" not in printed


def test_a_claim_holds_if_half_of_the_papers_lead_is_there() -> None:
    for paper, ours, word in (
        (0.03, 0.02, "yes"),
        (0.1, 0.04, "in part"),
        (0.1, -0.005, "no: level"),
        (0.01, 0.009, "no: level"),
        (0.1, -0.02, "no"),
    ):
        assert verdict(paper, ours) == word, (paper, ours)


# Worked examples


def test_pages_of_examples_show_the_code_and_the_plots_of_their_scripts() -> None:
    assert sorted(path.stem for path in SCRIPTS.glob("*.py")) == sorted(ORDER)
    assert read(PAGES / "index.md") == make_gallery()
    for name in ORDER:
        page = read(PAGES / f"{name}.md")
        assert strip_page(page) == make_page(name), name
        plots = PICTURE.findall(page)
        assert plots, name
        assert sorted(plots) == sorted(path.name for path in PAGES.glob(f"{name}-*.svg"))


SCRIPT = '''"""Two cells.

What you learn.
"""

# %%
# ## First
#
# Prose.
import warnings
from pathlib import Path

from comes.errors import ComesWarning

folder = Path("plots")
folder.mkdir()
print(f"in {folder / 'here'}")

# %%
(folder / "a-line.svg").write_text("<svg/>")
warnings.warn("few rows", ComesWarning, stacklevel=1)
'''


def test_a_script_becomes_a_page_with_what_it_prints_draws_and_warns_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("SCRIPTS", "PAGES"):
        monkeypatch.setattr(run_examples, name, tmp_path / name)
        (tmp_path / name).mkdir()
    monkeypatch.setattr(run_examples, "ORDER", ("two",))
    (tmp_path / "SCRIPTS" / "two.py").write_text(SCRIPT)
    assert run_examples.main([]) == 0
    page = (tmp_path / "PAGES" / "two.md").read_text()
    assert page.startswith("# Two cells\n\nWhat you learn.\n\n## First\n\nProse.\n\n```py\nimport")
    assert "```text\nin /tmp/example/here\n```" in page
    assert "```text\nComesWarning: few rows\n```\n\n![a line](two-1.svg)\n" in page
    assert strip_page(page) == make_page("two")
    assert "[![Two cells](two-1.svg)](two.md)" in (tmp_path / "PAGES" / "index.md").read_text()

    (tmp_path / "SCRIPTS" / "two.py").write_text('"""T."""\n\n# %%\nraise SystemExit("no data")\n')
    assert run_examples.main(["two"]) == 1  # the page stays as it is
    assert (tmp_path / "PAGES" / "two.md").read_text() == page
    with pytest.raises(SystemExit):
        run_examples.main(["three"])
