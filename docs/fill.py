"""Fill the generated parts of the documents.

    python docs/fill.py            # write them
    python docs/fill.py --check    # compare, and fail where a document is out of date

The check also reads the claims of ``claims.py``: sentences with numbers of stored results.

A generated part stands between two comments; edit what makes it, not the part::

    <!-- table: runs paper average_precision -->
    ...
    <!-- end -->

The words after ``table:`` are a name in ``TABLES`` of ``result_tables``, ``evidence_tables`` or
``format_tables``, and the function's arguments.
"""

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path

import evidence_tables
import format_tables
import result_tables
from claims import wrong_claims
from result_tables import ROOT, Table

TABLES = result_tables.TABLES | evidence_tables.TABLES | format_tables.TABLES
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PART = re.compile(
    r"^<!-- table: (?P<words>[^\n]+) -->\n.*?^<!-- end -->$", re.MULTILINE | re.DOTALL
)

BY_HAND = re.compile(r"^\|.*\| \**[-+]?\d[\d.]*( ± [\d.]+)?\**( •)? \||<!-- ", re.MULTILINE)


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the documents that are out of date, or name them; return the exit code."""
    parser = argparse.ArgumentParser(description="Fill the generated parts of the documents.")
    parser.add_argument("--check", action="store_true", help="compare, and write nothing")
    check = parser.parse_args(arguments).check
    stale = stale_documents()
    for path in stale:
        if not check:
            path.write_text(fill(path.read_text(encoding="utf-8")), encoding="utf-8")
        print(
            f"{path.relative_to(ROOT)} {'is out of date: run make tables' if check else 'written'}"
        )
    wrong = [*find_tables_by_hand(), *wrong_claims()] if check else []
    for line in wrong:
        print(line)
    return int(check and bool(stale or wrong))


def find_tables_by_hand() -> list[str]:
    """Return a line for every document with a table of numbers, or a marker, of its own."""
    return [
        f"{path.relative_to(ROOT)} has a table of numbers that nothing fills: {found[0]!r}"
        for path in DOCUMENTS
        if (found := BY_HAND.search(PART.sub("", path.read_text(encoding="utf-8"))))
    ]


def stale_documents() -> list[Path]:
    """Return the documents whose generated parts are not what they should be."""
    texts = {path: path.read_text(encoding="utf-8") for path in DOCUMENTS}
    return [path for path, text in texts.items() if fill(text) != text]


def fill(text: str) -> str:
    """Return a document with its generated parts made anew."""
    return PART.sub(_fill_part, text)


def _fill_part(part: re.Match[str]) -> str:
    name, *arguments = part["words"].split()
    if name not in TABLES:
        sys.exit(f"A document asks for a table; got no table {name!r}. Take one of {list(TABLES)}.")
    table = TABLES[name](*arguments)
    content = table if isinstance(table, str) else to_markdown(table)
    return f"<!-- table: {part['words']} -->\n\n{content}\n\n<!-- end -->"


def to_markdown(table: Table) -> str:
    """Return rows of cells as Markdown, the first row as the heads of the columns."""
    heads, *rows = table
    return "\n".join(_row_text(cells) for cells in (heads, ["---"] * len(heads), *rows))


def _row_text(cells: Sequence[str]) -> str:
    return "|" + "".join(f" {cell} |" if cell else " |" for cell in cells)


if __name__ == "__main__":
    sys.exit(main())
