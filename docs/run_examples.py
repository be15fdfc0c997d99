"""Run the worked examples and write their pages, with what they print and draw.

    python docs/run_examples.py              # all of them
    python docs/run_examples.py first_table  # one of them, and the gallery

``examples/NAME.py`` is a script of cells: ``# %%``, lines of Markdown in comments, then code. Its
page, ``docs/examples/NAME.md``, has the prose, the code, what each cell printed, and the .svg files
that it saved in its ``folder``. A script that lacks data or a package ends with a sentence
(``sys.exit``), and its page stays as it is.
"""

import argparse
import ast
import contextlib
import io
import re
import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from comes.errors import ComesWarning
from comes.files import replacing_file

ROOT = Path(__file__).parent.parent
SCRIPTS, PAGES = ROOT / "examples", ROOT / "docs" / "examples"
# From what a newcomer needs first to what few need; this is the order of the gallery.
ORDER = (
    "first_table",
    "answers_and_candidates",
    "judge_without_truth",
    "class_priors",
    "emotions_in_texts",
    "tox21_assays",
    "voc2012_pictures",
    "team_annotation",
    "own_loop",
    "paper_comparison",
)
FOLDER = "/tmp/example"  # stands in pages for the folder that a run writes to
CELL = re.compile(r"^# %%\n", re.MULTILINE)
SHOWN = re.compile(r"^```text\n(.*?)^```\n\n", re.MULTILINE | re.DOTALL)
PICTURE = re.compile(r"^!\[.*\]\((.*)\)\n\n", re.MULTILINE)


@dataclass(frozen=True)
class Cell:
    """Prose and code of a cell, and the line that the code begins at."""

    prose: str
    code: str
    line: int


@dataclass(frozen=True)
class Shown:
    """What a cell printed, and the plots that it saved."""

    text: str
    plots: tuple[Path, ...] = ()


def read_script(name: str) -> tuple[str, str, list[Cell]]:
    """Return the title, the introduction and the cells of an example."""
    source = (SCRIPTS / f"{name}.py").read_text(encoding="utf-8")
    title, _, introduction = (ast.get_docstring(ast.parse(source)) or "").partition("\n\n")
    starts = [match.end() for match in CELL.finditer(source)]
    ends = [*(match.start() for match in CELL.finditer(source)), len(source)][1:]
    cells = [_read_cell(source, start, end) for start, end in zip(starts, ends, strict=True)]
    return title.rstrip("."), introduction, cells


def _read_cell(source: str, start: int, end: int) -> Cell:
    """Split a cell: comment lines at its top are prose, the rest is code."""
    lines = source[start:end].splitlines()
    n_prose = next((k for k, line in enumerate(lines) if not line.startswith("#")), len(lines))
    prose = "\n".join(line.removeprefix("#").removeprefix(" ") for line in lines[:n_prose])
    before = source[:start].count("\n") + n_prose
    code = "\n".join(lines[n_prose:])
    return Cell(prose, code.strip("\n"), before + len(code) - len(code.lstrip("\n")))


def run_script(name: str) -> list[Shown]:
    """Run an example cell by cell, and return what every cell printed and drew."""
    names: dict[str, Any] = {"__name__": name, "__file__": str(SCRIPTS / f"{name}.py")}
    shown: list[Shown] = []
    for cell in read_script(name)[2]:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), warnings.catch_warnings():
            warnings.simplefilter("always", ComesWarning)
            warnings.showwarning = _print_warning
            exec(compile("\n" * cell.line + cell.code, names["__file__"], "exec"), names)
        folder = names.get("folder")
        known = {plot for before in shown for plot in before.plots}
        new = [] if folder is None else set(folder.glob("*.svg")) - known
        plots = sorted(new, key=lambda plot: plot.stat().st_mtime_ns)
        text = printed.getvalue()
        text = text if folder is None else text.replace(str(folder), FOLDER)
        shown.append(Shown("\n".join(map(str.rstrip, text.splitlines())), tuple(plots)))
    return shown


def _print_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Print a warning into the output of the cell, without the place in the code."""
    print(f"{category.__name__}: {message}")


def make_page(name: str, shown: Sequence[Shown] | None = None) -> str:
    """Return the page of an example; without what its cells showed, the frame that stays."""
    title, introduction, cells = read_script(name)
    parts = [f"# {title}\n\n{introduction}\n\n"]
    number = 0
    for k, cell in enumerate(cells):
        parts.append(f"{cell.prose}\n\n" if cell.prose else "")
        parts.append(f"```py\n{cell.code}\n```\n\n" if cell.code else "")
        if shown is None:
            continue
        parts.append(f"```text\n{shown[k].text}\n```\n\n" if shown[k].text else "")
        for plot in shown[k].plots:
            number += 1
            parts.append(f"![{plot.stem.replace('-', ' ')}]({name}-{number}.svg)\n\n")
    parts.append(f"Run it yourself: `python examples/{name}.py`.\n")
    return "".join(parts)


def strip_page(page: str) -> str:
    """Return a page without what its cells showed."""
    return PICTURE.sub("", SHOWN.sub("", page))


def make_gallery() -> str:
    """Return the page that lists the examples, with the first plot of each."""
    parts = [
        "# Worked examples\n\n"
        "Scripts that run as they are, in the order in which a newcomer needs them. A page is a\n"
        "script of the folder `examples` with what it prints and draws.\n"
    ]
    for name in ORDER:
        title, introduction, _ = read_script(name)
        about = introduction.partition("\n\n")[0]
        plot = PICTURE.search((PAGES / f"{name}.md").read_text(encoding="utf-8"))
        picture = f"\n[![{title}]({plot[1]})]({name}.md)\n" if plot else ""
        parts.append(f"\n## [{title}]({name}.md)\n\n{about}\n{picture}")
    return "".join(parts)


def write_page(name: str) -> None:
    """Run an example, and write its page and its plots."""
    shown = run_script(name)
    for old in PAGES.glob(f"{name}-*.svg"):
        old.unlink()
    plots = [plot for one in shown for plot in one.plots]
    for number, plot in enumerate(plots, 1):
        _write(PAGES / f"{name}-{number}.svg", plot.read_text(encoding="utf-8"))
    _write(PAGES / f"{name}.md", make_page(name, shown))


def _write(path: Path, text: str) -> None:
    """Write a file under a temporary name, and rename it."""
    with replacing_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def main(arguments: list[str] | None = None) -> int:
    """Write the pages of the examples named, or of all; return 1 if one could not run."""
    parser = argparse.ArgumentParser(description="Run the worked examples and write their pages.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="by default all")
    names = parser.parse_args(arguments).names or ORDER
    unknown = sorted(set(names) - set(ORDER))
    if unknown:
        parser.error(f"no example is called {unknown[0]!r}; there are {', '.join(ORDER)}.")
    PAGES.mkdir(exist_ok=True)
    lacking = 0
    for name in names:
        try:
            write_page(name)
        except SystemExit as missing:
            lacking = 1
            print(f"{name}: left as it is. {missing}", file=sys.stderr)
    _write(PAGES / "index.md", make_gallery())
    return lacking


if __name__ == "__main__":
    sys.exit(main())
