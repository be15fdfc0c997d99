"""The site of the documents: whole, light, readable for all, and without a request outside."""

import doctest
import gzip
import importlib
import os
import re
import threading
from collections.abc import Iterator
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from filelock import FileLock
from typer.main import get_command

import build_site
import comes
from browser import launch_browser
from comes.cli import app
from command_tables import help_page

pytestmark = pytest.mark.needs("zensical", "mkdocstrings")

DOCS = Path(__file__).parents[2] / "docs"
PHONE = {"width": 360, "height": 740}
# One page of each kind: home, pictures, code and tables, and a package.
KINDS = ("index", "guide/annotate-team", "develop/website", "reference/api/metrics")
WIDE = ("reference/cli", "guide/images", "develop/contributing")
CONTRAST = {"runOnly": ["color-contrast", "link-in-text-block"]}
MOST_BYTES, MOST_SHIFT = 300_000, 0.02
SHIFTS = """
    window.shift = 0;
    new PerformanceObserver((list) => list.getEntries().forEach((e) => (window.shift += e.value)))
      .observe({ type: "layout-shift", buffered: true });
"""


LINKING = {"a": "href", "link": "href", "img": "src", "script": "src", "source": "srcset"}


class Page(HTMLParser):
    """What a page links to, and where it can be linked to."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.anchors: set[str] = set()
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.anchors |= {value for key in ("id", "name") if (value := values.get(key))}
        if target := values.get(LINKING.get(tag, "")):
            self.targets.append(target)


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the site, built once for all processes of the tests."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "site"
    with FileLock(folder.with_suffix(".lock")):
        if not folder.exists():
            build_site.build_site(folder)
    return folder


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[str, Page]:
    return {
        path.relative_to(site).with_suffix("").as_posix(): Page(path.read_text(encoding="utf-8"))
        for path in site.rglob("*.html")
    }


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    """Where the site is served, as on the web."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site)))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with launch_browser() as browser:
        yield browser


@pytest.fixture
def opened(browser: Any) -> Iterator[Any]:
    """A page that notes what it is answered and what the browser complains of."""
    page = browser.new_page()
    page.answers, page.complaints = [], []
    page.on("response", lambda response: page.answers.append(response))
    page.on("requestfailed", lambda request: page.complaints.append(request.url))
    page.on("console", lambda message: page.complaints.append(message.text))
    page.on("pageerror", lambda error: page.complaints.append(str(error)))
    page.add_init_script(SHIFTS)
    yield page
    page.close()


@pytest.mark.smoke
def test_every_link_anchor_and_picture_of_the_site_resolves(
    site: Path, pages: dict[str, Page]
) -> None:
    """The generator looks for pages and anchors, not for pictures."""
    for name, page in pages.items():
        for target in page.targets:
            parts = urlsplit(target)
            if parts.scheme or parts.netloc:
                continue
            aim = (site / f"{name}.html").parent / unquote(parts.path) if parts.path else None
            assert aim is None or aim.exists(), (name, target)
            found = name if aim is None else aim.resolve().relative_to(site).with_suffix("")
            anchors = pages[str(found)].anchors if str(found) in pages else {parts.fragment}
            assert unquote(parts.fragment) in anchors | {""}, (name, target)


def test_a_page_that_links_nowhere_stops_the_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build_site, "help_page", lambda: "[a](nowhere.md) [b](cli.md#nothing)")
    with pytest.raises(SystemExit, match=r"(?s)page does not exist.*anchor does not exist"):
        build_site.build_site(tmp_path / "site")


def test_every_document_is_a_page_and_no_script_is(site: Path, pages: dict[str, Page]) -> None:
    documents = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")}
    for document in documents | set(build_site.MOVED.values()):
        assert document.removesuffix(".md") in pages
    assert list(site.rglob("*.py")) == []


def test_every_page_is_in_the_navigation(pages: dict[str, Page]) -> None:
    listed = {target.removeprefix("./") for target in pages["index"].targets}
    assert {f"{name}.html" for name in pages} <= listed | {"index.html"}


def test_every_exported_name_is_on_the_page_of_its_package(pages: dict[str, Page]) -> None:
    top = pages["reference/api/index"].targets
    for package in build_site.list_packages():
        names = importlib.import_module(f"comes.{package}").__all__
        wanted = {f"comes.{package}.{name}" for name in names}
        assert wanted <= pages[f"reference/api/{package}"].anchors, package
        assert f"{package}.html" in top
    assert set(comes.__all__) <= {target.rpartition(".")[2] for target in top}


def test_every_command_is_on_a_page_with_its_help(pages: dict[str, Page]) -> None:
    text = help_page()
    for name, command in get_command(app).commands.items():  # type: ignore[attr-defined]
        assert f"comes-{name}" in pages["reference/cli"].anchors
        for member in ("", *getattr(command, "commands", {})):
            full = " ".join(["comes", name, member]).strip()
            assert full.replace(" ", "-") in pages["reference/help"].anchors
            assert f"\n  {full}" in text  # the example; the usage stands at the margin


def test_a_page_weighs_little(site: Path, pages: dict[str, Page]) -> None:
    files = [path for path in site.rglob("*") if path.suffix in (".html", ".css", ".js")]
    weights = {path: len(gzip.compress(path.read_bytes())) for path in files}
    for name, page in pages.items():
        path = site / f"{name}.html"
        loaded = {path} | {(path.parent / target).resolve() for target in page.targets
                           if target.endswith((".css", ".js"))}  # fmt: skip
        assert len(loaded) > 4
        assert sum(weights[part] for part in loaded) < MOST_BYTES, name


def test_pictures_say_their_size_before_they_arrive(site: Path) -> None:
    for path in site.rglob("*.html"):
        for image in re.findall(r"<article.*?</article>", path.read_text("utf-8"), re.DOTALL):
            for tag in re.findall(r"<img [^>]*>", image):
                assert re.search(r'width="\d+" height="\d+"', tag), tag


@pytest.mark.needs("chromium")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_page_is_whole_steady_and_readable_for_all(
    opened: Any, address: str, kind: str, scheme: str
) -> None:
    from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]

    opened.emulate_media(color_scheme=scheme)
    opened.goto(f"{address}/{kind}.html", wait_until="networkidle")
    assert opened.evaluate("document.body.dataset.mdColorScheme") == (
        "slate" if scheme == "dark" else "default"
    )
    rules = CONTRAST if scheme == "dark" else None  # the rest is the same in both
    found = Axe().run(opened, options=rules).response["violations"]
    assert [(each["id"], [node["html"] for node in each["nodes"]]) for each in found] == []
    assert opened.complaints == []
    assert [a.url for a in opened.answers if not a.url.startswith(address)] == []
    assert opened.evaluate("window.shift") <= MOST_SHIFT
    bodies = [a.body() for a in opened.answers if a.request.resource_type != "image"]
    assert sum(len(gzip.compress(body)) for body in bodies) < MOST_BYTES


@pytest.mark.needs("chromium")
def test_pages_fit_a_phone(opened: Any, address: str) -> None:
    opened.set_viewport_size(PHONE)
    for kind in KINDS + WIDE:
        opened.goto(f"{address}/{kind}.html")
        assert opened.evaluate("document.documentElement.scrollWidth <= innerWidth"), kind
        assert opened.evaluate("document.querySelector('article').scrollWidth <= innerWidth"), kind


@pytest.mark.needs("chromium")
@pytest.mark.parametrize("place", ["server", "disk"])
def test_the_search_finds_a_word(opened: Any, site: Path, address: str, place: str) -> None:
    start = address if place == "server" else site.as_uri()
    opened.goto(f"{start}/index.html")
    field = opened.locator("dialog input")
    for _ in range(100):  # the script of the page may not listen yet
        if field.is_visible():
            break
        opened.keyboard.press("/")
        opened.wait_for_timeout(300)
    field.fill("ranking_risk")
    opened.wait_for_selector("dialog a[href*='reference/api/risks.html']")
    assert opened.complaints == []


@pytest.mark.needs("chromium")
def test_the_reader_can_choose_light_or_dark(opened: Any, address: str) -> None:
    opened.emulate_media(color_scheme="dark")
    opened.goto(f"{address}/index.html")
    opened.locator("label[title*='change to light']").click()
    assert opened.evaluate("document.body.dataset.mdColorScheme") == "default"
    opened.goto(f"{address}/guide/data.html")
    assert opened.evaluate("document.body.dataset.mdColorScheme") == "default"


def test_the_scripts_of_the_site_do_what_their_examples_say() -> None:
    tried = doctest.testmod(build_site)
    assert tried.attempted > 0
    assert tried.failed == 0


def test_names_and_links_of_a_page_become_what_they_mean() -> None:
    def ready(text: str) -> str:
        names = {"bce_risk": "risks.md#bce_risk", "comes.answers.NO": "answers.md#NO", "NO": "x"}
        return build_site.ready_page(text, "docs/guide/x.md", "guide/x.md", names)

    risk = "[`bce_risk()`](../reference/api/risks.md#bce_risk)"
    assert ready("`bce_risk()`, `answers.NO`, `NO`") == (
        f"{risk}, [`answers.NO`](../reference/api/answers.md#NO), `NO`"
    )
    kept = "# The `bce_risk`\n\n[`bce_risk`](a.md)\n\n```py\n`bce_risk` $x$ [a](../../b)\n```"
    assert ready(kept) == kept
    assert ready("[data.md](data.md#reading)") == "[Data](data.md#reading)"
    assert ready("[how](../../CONTRIBUTING.md#house-rules)") == (
        "[how](../develop/contributing.md#house-rules)"
    )


def test_formulas_become_mathml(site: Path) -> None:
    risks = (site / "reference" / "api" / "risks.html").read_text(encoding="utf-8")
    assert re.search("<math .*<mo>&#x02211;</mo>.*</math>", risks)
    assert 'display="block"' in risks
    for path in site.rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        assert "arithmatex" not in text and ":math:" not in text, path


def test_tables_of_docstrings_have_pipes() -> None:
    import docstrings

    table = "  =====  =====\n  a      b\n  =====  =====\n  1 | 2  `x`\n  =====  ====="
    assert docstrings.to_markdown(table) == ("  | a | b |\n  | --- | --- |\n  | 1 \\| 2 | `x` |")
    assert docstrings.to_markdown("Do.\n\n.. math:: a\n    + b\n\nOf :math:`x`.") == (
        "Do.\n\n$$a\n    + b$$\n\nOf $x$."
    )
