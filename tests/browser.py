"""Chromium for tests that are marked ``needs("chromium")``."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
STARTING = 120_000  # milliseconds, on a busy machine


@contextmanager
def launch_browser() -> Iterator[Any]:
    """Start Debian's Chromium without a screen."""
    path = shutil.which("chromium")
    assert path is not None, 'mark the test with needs("chromium")'
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=path, args=list(FLAGS), timeout=STARTING
        )
        yield browser
        browser.close()


@contextmanager
def open_page(path: Path, color_scheme: str) -> Iterator[Any]:
    """Open a file, noting what the browser complains of and what it asks for."""
    with launch_browser() as browser:
        opened = browser.new_page(color_scheme=color_scheme)
        opened.complaints = []
        opened.on("console", lambda message: opened.complaints.append(message.text))
        opened.on("pageerror", lambda error: opened.complaints.append(str(error)))
        opened.requests = []
        opened.on("request", lambda request: opened.requests.append(request.url))
        opened.goto(path.as_uri())
        yield opened
