"""Fill the generated parts of the documents.

    python docs/fill.py            # write them
    python docs/fill.py --check    # compare, and fail where a document is out of date

The check also reads the claims of ``claims.py``: sentences with numbers of stored results.

A generated part stands between two comments; edit what makes it, not the part. The first comment
names a function of ``TABLES`` with its arguments, or a result with the columns to show of each of
its records::

    <!-- table: runs paper average_precision -->
    ...
    <!-- end -->

    <!-- table: benchmarks/large_table
    pandas = `pandas.read_csv` alone
    now = `open_dataset`
    reader | {name}
    CPU seconds | {cpu_seconds:.0f}
    -->
    ...
    <!-- end -->

The first line is the file and keys in it. ``by KEY, KEY`` after it takes means over records that
share these. A line with ``=`` picks a record by name (or by the first key after ``by``) and says
what it is called. A line with ``|`` is a column: its head, and what a cell says; ``{a/b:.2f}`` is
the key b inside a, ``{a[0]}`` the first of a list, and ``{a*1000:.0f}`` a thousand times a.
"""

import argparse
import math
import re
import string
import sys
from collections.abc import Sequence
from typing import Any

import pandas as pd

import format_tables
import result_tables
from claims import wrong_claims
from result_tables import ROOT, Table, read_records

TABLES = result_tables.TABLES | format_tables.TABLES
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PART = re.compile(r"^<!-- table: (?P<asks>.*?)-->\n.*?^<!-- end -->$", re.MULTILINE | re.DOTALL)
BY_HAND = re.compile(r"^\|.*\| \**[-+]?\d[\d.]*( ± [\d.]+)?\**( •)? \||<!-- ", re.MULTILINE)


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the documents that are out of date, or name them; return the exit code."""
    parser = argparse.ArgumentParser(description="Fill the generated parts of the documents.")
    parser.add_argument("--check", action="store_true", help="compare, and write nothing")
    check = parser.parse_args(arguments).check
    texts = {path: path.read_text(encoding="utf-8") for path in DOCUMENTS}
    filled = {path: fill(text) for path, text in texts.items()}
    stale = [path for path, text in texts.items() if filled[path] != text]
    for path in stale:
        if not check:
            path.write_text(filled[path], encoding="utf-8")
        print(path.relative_to(ROOT), "is out of date: run make tables" if check else "written")
    if not check:
        return 0
    wrong = [
        f"{path.relative_to(ROOT)} has a table of numbers that nothing fills: {found[0]!r}"
        for path, text in texts.items()
        if (found := BY_HAND.search(PART.sub("", text)))
    ]
    wrong += wrong_claims()
    print("\n".join(wrong), end="\n" if wrong else "")
    return int(bool(stale or wrong))


def fill(text: str) -> str:
    """Return a document with its generated parts made anew."""
    return PART.sub(_fill_part, text)


def _fill_part(part: re.Match[str]) -> str:
    name, *arguments = part["asks"].split()
    if "\n" in part["asks"]:
        made: Table | str = show_records(part["asks"])
    elif name in TABLES:
        made = TABLES[name](*arguments)
    else:
        sys.exit(f"A page asks for a table; got no table {name!r}. Take one of {list(TABLES)}.")
    content = made if isinstance(made, str) else to_markdown(made)
    return f"<!-- table: {part['asks']}-->\n\n{content}\n\n<!-- end -->"


def to_markdown(table: Table) -> str:
    """Return rows of cells as Markdown, the first row as the heads of the columns."""
    heads, *rows = table
    lines = (heads, ["---"] * len(heads), *rows)
    return "\n".join("|" + "".join(f" {c} |" if c else " |" for c in cells) for cells in lines)


def show_records(asks: str) -> Table:
    """Return what a comment asks of the records of a result."""
    first, *lines = asks.strip().splitlines()
    source, _, keys = first.partition(" by ")
    by = keys.split(", ") if keys else []
    columns = [line.partition("|")[::2] for line in lines if "|" in line]
    titles = dict(line.split(" = ", 1) for line in lines if "|" not in line)
    records = pd.json_normalize(read_records(source), sep="/")
    if by:
        records = records.groupby(by, sort=False).mean(numeric_only=True).reset_index()
    if titles:
        named = (by or ["name"])[0]
        records = records.set_index(named).loc[list(titles)].reset_index()
        records[named] = list(titles.values())
    cells = _Cells()
    values: list[dict[str, Any]] = [dict(row) for _, row in records.astype(object).iterrows()]
    rows = [[cells.vformat(cell.strip(), (), row) for _, cell in columns] for row in values]
    return [[head.strip() for head, _ in columns], *rows]


class _Cells(string.Formatter):
    """Templates in which a number that is not there leaves its place empty."""

    def get_field(self, field_name: str, args: Any, kwargs: Any) -> Any:
        name, _, factor = field_name.partition("*")  # a name may have dots
        name, _, part = name.partition("[")
        value = kwargs[name]
        if part and isinstance(value, list):
            value = value[int(part[:-1])]
        return (value * float(factor) if factor else value), name

    def format_field(self, value: Any, format_spec: str) -> Any:
        if isinstance(value, float) and math.isnan(value):
            return ""
        if isinstance(value, float) and value.is_integer() and not format_spec:
            return str(int(value))
        return super().format_field(value, format_spec)


if __name__ == "__main__":
    sys.exit(main())
