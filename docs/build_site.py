"""Build the site of the documents: pages with navigation, search and the reference.

    python docs/build_site.py             # into build/site

Nothing is fetched, and a warning of the generator fails: a link or an anchor that leads nowhere.
The documents are pages as GitHub shows them; links to files that are not on the site lead to the
repository, names of the library to the reference, and formulas become MathML. The reference is
made from docstrings by mkdocstrings.
"""

import argparse
import functools
import html
import importlib
import json
import os
import pkgutil
import posixpath
import re
import shutil
import struct
import subprocess
import sys
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

from latex2mathml.converter import convert

import comes
from command_tables import help_page

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
SETTINGS = DOCS / "site"
REFERENCE = "reference/api"
# Documents of the root that are pages, and where.
MOVED = {"CONTRIBUTING.md": "develop/contributing.md", "CHANGELOG.md": "develop/changelog.md"}
# What the text of a page is made of: what is left as it is comes first.
TOKEN = re.compile(
    r"(?P<fence>^ *(?P<ticks>```+)[^\n]*\n.*?^ *(?P=ticks)$)"
    r"|(?P<heading>^#+ [^\n]*)"
    r"|(?P<link>!?\[(?:`[^`]*`|[^\[\]`])*\](?:\([^)\n]*\))?)"
    r"|(?P<code>(?P<quote>`+)[^`]+(?P=quote))",
    re.MULTILINE | re.DOTALL,
)
TARGET = re.compile(r"(?<=\]\()(?P<path>[^)#:\s]+)(?P<anchor>#[^)\s]*)?(?=\))")
ITEM = re.compile(r"(?P<indent> *)(?P<mark>[-*+]|\d+[.)]) +")
FORMULA = re.compile(
    r'<(?P<tag>span|div) class="arithmatex">\\[(\[](?P<tex>.*?)\\[)\]]</(?P=tag)>', re.DOTALL
)
IMAGE = re.compile(r'<img (?![^>]*\bwidth=)([^>]*?)src="([^":]+)"')
SVG_SIZE = re.compile(r'<svg[^>]*?\sviewBox="[\d.-]+ [\d.-]+ ([\d.]+) ([\d.]+)"', re.DOTALL)


def main(arguments: Sequence[str] | None = None) -> None:
    """Build the site."""
    parser = argparse.ArgumentParser(description="Build the site of the documents.")
    parser.add_argument("output", nargs="?", type=Path, default=ROOT / "build" / "site")
    output = parser.parse_args(arguments).output
    build_site(output)
    print(f"{output / 'index.html'} has {len(list(output.rglob('*.html')))} pages")


def build_site(output: Path) -> None:
    """Build the site into a folder, replacing what is there; exit where something is wrong."""
    source = output.with_name(f"{output.name}-pages")
    for folder in (output, source):
        shutil.rmtree(folder, ignore_errors=True)
    write_pages(source / "docs")
    reference = [f"{REFERENCE}/{name}.md" for name in ("index", *list_packages())]
    settings = (SETTINGS / "zensical.toml").read_text(encoding="utf-8")
    settings = settings.replace('"reference/api"', json.dumps(reference))
    settings = settings.replace('"src"', json.dumps(str(ROOT / "src")))
    (source / "zensical.toml").write_text(settings, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "zensical", "build", "--strict"],
        cwd=source,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(DOCS), *sys.path])},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(f"{done.stdout}{done.stderr}")
    finish(source / "site")
    (source / "site").rename(output)


def write_pages(folder: Path) -> None:
    """Write the pages of the site as the generator reads them."""
    shutil.copytree(DOCS, folder, ignore=shutil.ignore_patterns("*.py", "*.md", "site", "__*"))
    shutil.copytree(SETTINGS, folder / "assets", ignore=shutil.ignore_patterns("*.toml"))
    documents = [path.relative_to(ROOT).as_posix() for path in DOCS.rglob("*.md")]
    names = find_names()
    pages = {
        page: ready_page((ROOT / path).read_text(encoding="utf-8"), path, page, names)
        for path, page in ({path: path.removeprefix("docs/") for path in documents} | MOVED).items()
    }
    pages |= {f"{REFERENCE}/{name}.md": f"# comes.{name}\n\n::: comes.{name}\n"
              for name in list_packages()}  # fmt: skip
    pages[f"{REFERENCE}/index.md"] = top_page()
    pages["reference/help.md"] = help_page()
    for page, text in pages.items():
        path = folder / page
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def list_packages() -> list[str]:
    """Return the names of the packages and modules that export something."""
    names = [module.name for module in pkgutil.iter_modules(comes.__path__)]
    return [n for n in names if n[0] != "_" and hasattr(_package(n), "__all__")]


def _package(name: str) -> object:
    return importlib.import_module(f"comes.{name}")


def find_names() -> dict[str, str]:
    """Return where each exported name is, by 'comes.risks.bce_risk' and, if unique, 'bce_risk'."""
    full = [(p, name) for p in list_packages() for name in _package(p).__all__]  # type: ignore[attr-defined]
    places = {f"comes.{p}.{name}": f"{p}.md#comes.{p}.{name}" for p, name in full}
    short = [name for _, name in full]
    return places | {
        name: places[f"comes.{p}.{name}"] for p, name in full if short.count(name) == 1
    }


def top_page() -> str:
    """Return the page of `comes` itself: its names, and the packages."""
    packages = {name: getattr(comes, name).__module__.split(".")[1] for name in comes.__all__}
    names = (f"- [`{name}`][comes.{package}.{name}]" for name, package in packages.items())
    listed = (f"- [`comes.{name}`]({name}.md)" for name in list_packages())
    about = "::: comes\n    options:\n      members: false\n      show_root_heading: false"
    return "\n".join(["# comes\n", about, "\n## Names\n", *names, "\n## Packages\n", *listed, ""])


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
        Where names of the library are, relative to the pages of the reference.

    Examples
    --------
    >>> ready_page("See [it](../../LICENSE).", "docs/guide/a.md", "guide/a.md", {})
    'See [it](https://github.com/comes-ml/comes/blob/main/LICENSE).'
    """
    folder = posixpath.dirname(page)

    def ready(token: re.Match[str]) -> str:
        if token["link"] is not None:
            return _titled_link(_ready_target(token[0], posixpath.dirname(path), folder), folder)
        return _code_link(token[0], folder, names) if token["code"] is not None else token[0]

    return TOKEN.sub(ready, indent_lists(text))


def _ready_target(link: str, source: str, folder: str) -> str:
    """Return a link whose relative target is a page of the site, or in the repository."""

    def ready(target: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(source, target["path"]))
        anchor = target["anchor"] or ""
        if path in MOVED:
            return posixpath.relpath(MOVED[path], folder or ".") + anchor
        if path.startswith("docs/") and not path.endswith(".py"):
            return posixpath.relpath(path.removeprefix("docs/"), folder or ".") + anchor
        kind = "tree" if (ROOT / path).is_dir() else "blob"
        return f"{repository()}/{kind}/main/{path}{anchor}"

    return TARGET.sub(ready, link)


def _titled_link(link: str, folder: str) -> str:
    """Return a link that says the title of a page where it said the name of its file."""
    named = re.fullmatch(r"\[[\w./-]+\.md\]\(([\w./-]+\.md)(#[^)]*)?\)", link)
    title = named and _title(posixpath.normpath(posixpath.join(folder, named[1])))
    return f"[{title}]({named[1]}{named[2] or ''})" if named and title else link


@functools.cache
def _title(page: str) -> str | None:
    """Return the title of a page that is a document; None if there is none."""
    path = {moved: path for path, moved in MOVED.items()}.get(page, f"docs/{page}")
    if not (ROOT / path).exists():
        return None
    heading = re.search(r"^# (.+)$", (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE)
    return heading[1] if heading else None


def _code_link(code: str, folder: str, names: Mapping[str, str]) -> str:
    """Return code with a link, if it is the name of something of ours."""
    name = code.strip("`").removesuffix("()")
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


def finish(output: Path) -> None:
    """Change what the generator has no setting for."""
    (output / "404.html").unlink()  # its links hold only at the root of a server
    for path in output.rglob("*.html"):
        text = re.sub(r"<th([^>]*)></th>", r"<td\1></td>", path.read_text(encoding="utf-8"))
        text = text.replace('"md-path" aria-label="Navigation"', '"md-path" aria-label="Path"')
        text = FORMULA.sub(_formula, text)
        text = IMAGE.sub(functools.partial(_sized_image, path.parent), text)
        path.write_text(text, encoding="utf-8")
    index = json.loads((output / "search.json").read_text(encoding="utf-8"))
    for item in index["items"]:
        if item["location"].startswith(f"{REFERENCE}/"):  # what it is, not how it is called
            summary = re.search(r"<p>.*?</p>", item["text"], re.DOTALL)
            item["text"] = summary[0] if summary else ""
    text = json.dumps(index, separators=(",", ":"))
    (output / "search.json").write_text(text, encoding="utf-8")
    (output / "search.js").write_text(f"var __index = {text}", encoding="utf-8")


def _formula(formula: re.Match[str]) -> str:
    """Return a formula as MathML; a wide one scrolls."""
    tex = " ".join(html.unescape(formula["tex"]).split())
    if formula["tag"] == "span":
        return str(convert(tex))
    return str(convert(tex, display="block")).replace("<math ", '<math tabindex="0" ', 1)


def _sized_image(folder: Path, image: re.Match[str]) -> str:
    """Return a picture with its size, so that the text does not move when it arrives."""
    path = folder / image[2]
    size = None
    if path.suffix == ".png" and path.exists():
        size = struct.unpack(">II", path.read_bytes()[16:24])
    elif path.suffix == ".svg" and (found := SVG_SIZE.search(path.read_text(encoding="utf-8"))):
        size = (round(float(found[1])), round(float(found[2])))
    shown = f'width="{size[0]}" height="{size[1]}" ' if size else ""
    return f'<img {shown}{image[1]}src="{image[2]}"'


if __name__ == "__main__":
    main()
