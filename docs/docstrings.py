"""Docstrings for mkdocstrings: formulas and tables of reStructuredText as Markdown."""

import re
from typing import Any

import griffe

TABLE = re.compile(r"^( *)(=[= ]+=)\n(.+\n)\1\2\n((?:.+\n)+?)\1\2$", re.MULTILINE)


class Docstrings(griffe.Extension):
    """Changes docstrings when they are read."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Change the docstring of a module, class, function or attribute."""
        if obj.docstring:
            obj.docstring.value = to_markdown(obj.docstring.value)


def to_markdown(text: str) -> str:
    """Return a docstring with formulas in dollars and tables with pipes."""
    text = re.sub(r":math:`([^`]+)`", r"$\1$", text)
    text = re.sub(r"^( *)\.\. math:: (.+(?:\n\1 +.+)*)", r"\1$$\2$$", text, flags=re.MULTILINE)
    return TABLE.sub(_table, text)


def _table(found: re.Match[str]) -> str:
    """Return a simple table with pipes."""
    indent, rule, head, body = found.groups()
    starts = [column.start() for column in re.finditer("=+", rule)]
    spans = list(zip(starts, [*starts[1:], None], strict=True))
    rows = [
        [line.removeprefix(indent)[start:end].strip().replace("|", "\\|") for start, end in spans]
        for line in (head.rstrip(), *body.splitlines())
    ]
    rows.insert(1, ["---"] * len(spans))
    return "\n".join(f"{indent}| {' | '.join(row)} |" for row in rows)
