"""The pages of the site: the documents as GitHub shows them, made ready for the generator.

Links to files that are not on the site lead to the repository, names of the library to the
reference, and formulas become MathML.
"""

import functools
import posixpath
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path

from latex2mathml.converter import convert

ROOT = Path(__file__).parent.parent
REFERENCE = "reference/api"
# Documents of the root that are pages, and where.
MOVED = {"CONTRIBUTING.md": "develop/contributing.md", "CHANGELOG.md": "develop/changelog.md"}
# What the text of a page is made of: what is left as it is comes first.
TOKEN = re.compile(
    r"(?P<fence>^ *(?P<ticks>```+)[^\n]*\n.*?^ *(?P=ticks)$)"
    r"|(?P<heading>^#+ [^\n]*)"
    r"|(?P<link>!?\[(?:`[^`]*`|[^\[\]`])*\](?:\([^)\n]*\))?)"
    r"|(?P<code>(?P<quote>`+)[^`]+(?P=quote))"
    r"|(?P<document>\bdocs/[\w/-]+\.md\b)"
    r"|\$\$(?P<formula>[^$]+)\$\$"
    r"|(?<![\w$\\])\$(?P<inline>[^\s$`](?:[^$`\n]*[^\s$`\\])?)\$(?![\w$])",
    re.MULTILINE | re.DOTALL,
)
TARGET = re.compile(r"(?<=\]\()(?P<path>[^)#:\s]+)(?P<anchor>#[^)\s]*)?(?=\))")
ITEM = re.compile(r"(?P<indent> *)(?P<mark>[-*+]|\d+[.)]) +")


@functools.cache
def repository() -> str:
    """Return the address of the repository, which pyproject.toml names."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return str(settings["project"]["urls"]["Repository"])


def ready_page(text: str, path: str, page: str, names: Mapping[str, str]) -> str:
    """Return a document as a page of the site.

    Parameters
    ----------
    text : str
    path : str
        Of the document in the repository, such as docs/guide/data.md.
    page : str
        Of the page on the site, such as guide/data.md.
    names : mapping of str to str
        Where names of the library are, relative to the pages of rooms.

    Examples
    --------
    >>> ready_page("See [it](../../LICENSE).", "docs/guide/a.md", "guide/a.md", {})
    'See [it](https://github.com/comes-ml/comes/blob/main/LICENSE).'
    """
    folder = posixpath.dirname(page)

    def ready(token: re.Match[str]) -> str:
        found = token[0]
        if token["link"] is not None:
            return _titled_link(found, folder)
        if token["document"] is not None:
            return _page_link(found, folder)
        if token["code"] is not None:
            return _code_link(found, folder, names)
        if token["formula"] is not None:
            formula = convert(" ".join(token["formula"].split()), display="block")
            return formula.replace("<math ", '<math tabindex="0" ', 1)  # a wide one scrolls
        if token["inline"] is not None:
            return convert(token["inline"])
        return found

    return TOKEN.sub(ready, _ready_targets(text, posixpath.dirname(path), folder))


def _ready_targets(text: str, source: str, folder: str) -> str:
    """Return a text whose relative links lead to pages of the site, or to the repository."""

    def ready(target: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(source, target["path"]))
        anchor = target["anchor"] or ""
        if path in MOVED:
            return posixpath.relpath(MOVED[path], folder or ".") + anchor
        if path.startswith("docs/") and not path.endswith(".py"):
            return posixpath.relpath(path.removeprefix("docs/"), folder or ".") + anchor
        kind = "tree" if (ROOT / path).is_dir() else "blob"
        return f"{repository()}/{kind}/main/{path}{anchor}"

    parts = re.split(r"(^ *```.*?^ *```$)", text, flags=re.MULTILINE | re.DOTALL)
    return "".join(part if k % 2 else TARGET.sub(ready, part) for k, part in enumerate(parts))


def _titled_link(link: str, folder: str) -> str:
    """Return a link that says the title of a page where it said the name of its file."""
    named = re.fullmatch(r"\[[\w./-]+\.md\]\(([\w./-]+\.md)(#[^)]*)?\)", link)
    title = named and _title(posixpath.normpath(posixpath.join(folder, named[1])))
    return f"[{title}]({named[1]}{named[2] or ''})" if named and title else link


def _page_link(path: str, folder: str) -> str:
    """Return a link to a document that a text names, such as docs/guide/data.md."""
    page = path.removeprefix("docs/")
    title = _title(page)
    return f"[{title}]({posixpath.relpath(page, folder or '.')})" if title else path


@functools.cache
def _title(page: str) -> str | None:
    """Return the title of a page that is a document; None if there is none."""
    path = {moved: path for path, moved in MOVED.items()}.get(page, f"docs/{page}")
    if not (ROOT / path).exists():
        return None
    heading = re.search(r"^# (.+)$", (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE)
    return heading[1] if heading else None


def _code_link(code: str, folder: str, names: Mapping[str, str]) -> str:
    """Return code with a link, if it is the name of something of ours, or of a document."""
    name = code.strip("`").removesuffix("()")
    if re.fullmatch(r"docs/[\w/-]+\.md", name):
        return _page_link(name, folder)
    place = names.get(name) or names.get(f"comes.{name}")
    # A plain word is more often a column, a value or an option.
    if place is None or not re.search(r"[._]|[a-z][A-Z]", name):
        return code
    return f"[{code}]({posixpath.relpath(REFERENCE, folder or '.')}/{place})"


def indent_lists(text: str) -> str:
    r"""Return a text in which what belongs to an item of a list is indented by four spaces.

    GitHub takes what stands below the first letter of the item, the generator four spaces.

    Examples
    --------
    >>> print(indent_lists("1. One\n\n   Two\n   - Three"))
    1. One
    <BLANKLINE>
        Two
        - Three
    """
    lines: list[str] = []
    offsets: list[int] = []
    fence = ""
    for line in text.split("\n"):
        bare = line.lstrip(" ")
        depth = len(line) - len(bare)
        if not fence and bare:
            offsets = [offset for offset in offsets if depth >= offset]
        own = offsets[-1] if offsets else 0
        rest = line[min(own, depth) :] if bare else ""
        lines.append(" " * (4 * len(offsets)) + rest if rest else "")
        if found := re.match("`{3,}", bare):
            fence = "" if fence and bare.startswith(fence) else fence or found[0]
        elif not fence and (item := ITEM.match(line)):
            offsets.append(item.end())
    return "\n".join(lines)
