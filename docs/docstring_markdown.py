"""Docstrings as Markdown: numpydoc sections, tables, formulas and examples."""

import re
import textwrap
from collections.abc import Iterator, Sequence

SECTION = re.compile(r"^([A-Z][A-Za-z ]+)\n-{3,}$\n?", re.MULTILINE)
FIELDS = ("Parameters", "Returns", "Yields", "Raises", "Attributes")
RULE = re.compile(r"^=+(?: +=+)+$")


def docstring_to_markdown(docstring: str) -> str:
    """Return a docstring without indentation as Markdown.

    Parameters
    ----------
    docstring : str
        As `inspect.getdoc` returns it.

    Examples
    --------
    >>> text = '''Return a half.
    ...
    ... Parameters
    ... ----------
    ... x : float
    ...     What is halved.'''
    >>> print(docstring_to_markdown(text))
    Return a half.
    <BLANKLINE>
    **Parameters**
    <BLANKLINE>
    `x`
    :   float
    <BLANKLINE>
        What is halved.
    """
    opening, *rest = SECTION.split(docstring)
    parts = [text_to_markdown(opening)]
    for title, body in zip(rest[::2], rest[1::2], strict=True):
        parts.append(f"**{title}**")
        if title in FIELDS:
            parts += _definitions(body, has_names=title not in ("Returns", "Yields", "Raises"))
        elif title == "Examples":
            parts += _examples(body)
        else:
            parts.append(text_to_markdown(body))
    return "\n\n".join(part for part in parts if part)


def text_to_markdown(text: str) -> str:
    """Return paragraphs of a docstring as Markdown: formulas in dollars, tables with pipes."""
    text = re.sub(r"^\.\. math:: (.+(?:\n +.+)*)", r"$$\1$$", text.strip(), flags=re.MULTILINE)
    text = re.sub(r":math:`([^`]+)`", r"$\1$", text)
    return "\n\n".join(_block(block) for block in re.split(r"\n\s*\n", text))


def summary_of(docstring: str) -> str:
    """Return the first paragraph of a docstring as one line of Markdown."""
    return " ".join(text_to_markdown(re.split(r"\n\s*\n", docstring)[0]).split())


def _block(block: str) -> str:
    lines = block.splitlines()
    return _table(lines) if RULE.match(lines[0].strip()) else block


def _table(lines: Sequence[str]) -> str:
    """Return a simple table of reStructuredText with pipes."""
    starts = [found.start() for found in re.finditer("=+", lines[0])]
    spans = list(zip(starts, [*starts[1:], None], strict=True))
    rows = [
        [line[start:end].strip().replace("|", "\\|") for start, end in spans]
        for line in lines
        if not RULE.match(line.strip())
    ]
    rows.insert(1, ["---"] * len(spans))
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _definitions(body: str, *, has_names: bool) -> Iterator[str]:
    """Give the entries of a section, each as a term with what it is."""
    for entry in re.split(r"\n(?=\S)", body.strip("\n")):
        head, _, description = entry.partition("\n")
        name, colon, kind = head.partition(" : ")
        text = text_to_markdown(textwrap.dedent(description)) if description.strip() else ""
        term = ", ".join(f"`{part}`" for part in name.split(", ")) if has_names or colon else name
        said = [part for part in (kind, text) if part]
        definition = textwrap.indent("\n\n".join(said) or "&nbsp;", "    ")
        yield f"{term}\n:   {definition.lstrip()}"


def _examples(body: str) -> Iterator[str]:
    for block in re.split(r"\n\s*\n", body.strip()):
        code = textwrap.dedent(block)
        yield f"```pycon\n{code}\n```" if code.startswith(">>>") else text_to_markdown(code)
