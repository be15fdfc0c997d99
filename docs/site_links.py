"""Links of a built site: those that lead nowhere."""

from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LINKING = {"a": "href", "link": "href", "img": "src", "script": "src", "source": "srcset"}


class Page(HTMLParser):
    """What a page links to, and where it can be linked to."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.anchors: set[str] = set()
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an anchor, and what a tag links to."""
        values = dict(attrs)
        self.anchors |= {value for key in ("id", "name") if (value := values.get(key))}
        if target := values.get(LINKING.get(tag, "")):
            self.targets.append(target)


def find_broken_links(site: Path) -> list[str]:
    """Return a line for each link, anchor or picture that leads nowhere.

    Parameters
    ----------
    site : Path
        The folder of the site. Links to other sites are not followed.
    """
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}
    broken = []
    for path, page in pages.items():
        for target in page.targets:
            parts = urlsplit(target)
            if parts.scheme or parts.netloc:
                continue
            aim = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            anchor = unquote(parts.fragment)
            is_known = aim not in pages or not anchor or anchor in pages[aim].anchors
            if not aim.exists() or not is_known:
                broken.append(f"{path.relative_to(site)} links to {target}, which is not there")
    return broken
