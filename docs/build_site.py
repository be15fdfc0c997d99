"""Build the site of the documents: pages with navigation, search and the reference.

    python docs/build_site.py             # into build/site

Nothing is fetched. A warning of the generator fails, and so does a link, an anchor or a picture
that leads nowhere.
"""

import argparse
import json
import posixpath
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from help_page import help_page
from picture_sizes import with_sizes
from reference_pages import find_names, list_rooms, room_page, top_page
from run_examples import ORDER
from site_links import find_broken_links
from site_pages import MOVED, REFERENCE, ROOT, indent_lists, ready_page, repository

DOCS = ROOT / "docs"
SETTINGS = DOCS / "site"
# The sections, and their pages in order; examples and rooms are taken as they are there.
NAVIGATION = {
    "Start": "install first-model pictures texts annotation",
    "Examples": " ".join(("index", *ORDER)),
    "Guide": "choosing answers data tables texts images priors selection thresholds plots training "
    "scikit-learn own-loop recipes experiments scale clusters "
    "annotate annotate-team annotate-growing annotate-server",
    "Reference": "cli help formats annotate-api metrics notation",
    "Explain": "candidate-sets risks assumptions methods instance-rates paper",
    "Develop": "architecture contributing stability releasing speed robustness website changelog",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Build the site; return the exit code."""
    parser = argparse.ArgumentParser(description="Build the site of the documents.")
    parser.add_argument("output", nargs="?", type=Path, default=ROOT / "build" / "site")
    output = parser.parse_args(arguments).output
    build_site(output)
    broken = find_broken_links(output)
    for link in broken:
        print(link)
    print(f"{output / 'index.html'} has {len(list(output.rglob('*.html')))} pages")
    return int(bool(broken))


def build_site(output: Path) -> None:
    """Build the site into a folder, replacing what is there; exit where something is wrong."""
    source = output.with_name(f"{output.name}-pages")
    for folder in (output, source):
        shutil.rmtree(folder, ignore_errors=True)
    write_pages(source / "docs")
    navigation = navigate({path.relative_to(source / "docs").as_posix()
                           for path in (source / "docs").rglob("*.md")})  # fmt: skip
    settings = (SETTINGS / "zensical.toml").read_text(encoding="utf-8")
    settings = settings.replace("nav = []", f"nav = {_toml(navigation)}")
    (source / "zensical.toml").write_text(settings, encoding="utf-8")
    command = [sys.executable, "-m", "zensical", "build", "--strict"]
    done = subprocess.run(command, cwd=source, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{done.stdout}{done.stderr}")
    finish(source / "site")
    (source / "site").rename(output)


def write_pages(folder: Path) -> None:
    """Write the pages of the site as the generator reads them."""
    shutil.copytree(DOCS, folder, ignore=shutil.ignore_patterns("*.py", "*.md", "site", "__*"))
    shutil.copytree(SETTINGS, folder / "assets", ignore=shutil.ignore_patterns("*.toml"))
    names = find_names()
    documents = [path.relative_to(ROOT).as_posix() for path in DOCS.rglob("*.md")]
    pages = {path: path.removeprefix("docs/") for path in documents} | MOVED
    for path, page in pages.items():
        text = (ROOT / path).read_text(encoding="utf-8")
        _write(folder / page, ready_page(indent_lists(text), path, page, names))
    reference = {room: room_page(room, repository()) for room in list_rooms()}
    for room, text in (reference | {"index": top_page()}).items():
        page = f"{REFERENCE}/{room}.md"
        _write(folder / page, ready_page(text, f"docs/{page}", page, names))
    _write(folder / "reference" / "help.md", help_page())


def navigate(pages: set[str]) -> list[dict[str, object]]:
    """Return the navigation; exit if it lacks a page, or names one that is not there."""
    rooms = sorted(page for page in pages if posixpath.dirname(page) == REFERENCE)
    sections: dict[str, list[object]] = {
        title: [f"{title.lower()}/{word}.md" for word in words.split()]
        for title, words in NAVIGATION.items()
    }
    named = {"index.md", *rooms, *(page for of in sections.values() for page in of)}
    sections["Reference"].append({"The library": _index_first(rooms)})
    for said, wrong in (("lacks", pages - named), ("has what is not there:", named - pages)):
        if wrong:
            listed = ", ".join(sorted(map(str, wrong)))
            sys.exit(f"NAVIGATION in docs/build_site.py {said} {listed}.")
    navigation: list[dict[str, object]] = [{"Home": "index.md"}]
    navigation += [{title: of} for title, of in sections.items() if of]
    return navigation


def _index_first(pages: Sequence[str]) -> list[str]:
    return sorted(pages, key=lambda page: (posixpath.basename(page) != "index.md", page))


def _toml(value: object) -> str:
    """Return nested lists and dicts of texts as TOML."""
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(k)} = {_toml(v)}" for k, v in value.items()) + "}"
    return json.dumps(value)


def finish(output: Path) -> None:
    """Change what the generator has no setting for: table heads, a label, sizes, a long index."""
    (output / "404.html").unlink()  # its links hold only at the root of a server
    for path in output.rglob("*.html"):
        html = re.sub(r"<th([^>]*)></th>", r"<td\1></td>", path.read_text(encoding="utf-8"))
        html = html.replace('"md-path" aria-label="Navigation"', '"md-path" aria-label="Path"')
        path.write_text(with_sizes(html, path.parent), encoding="utf-8")
    index = json.loads((output / "search.json").read_text(encoding="utf-8"))
    for item in index["items"]:
        if item["location"].startswith(f"{REFERENCE}/"):  # what it is, not how it is called
            summary = re.search(r"<p>.*?</p>", item["text"], re.DOTALL)
            item["text"] = summary[0] if summary else ""
    text = json.dumps(index, separators=(",", ":"))
    (output / "search.json").write_text(text, encoding="utf-8")
    (output / "search.js").write_text(f"var __index = {text}", encoding="utf-8")


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
