"""Debian's Firefox, driven by its own protocol (marionette), for tests marked as needing it."""

import json
import re
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

SETTINGS = {
    "browser.shell.checkDefaultBrowser": False,
    "datareporting.policy.dataSubmissionEnabled": False,
    "app.normandy.enabled": False,
    "toolkit.telemetry.reportingpolicy.firstRun": False,
    "marionette.port": 0,  # a free one
}
PATIENCE = 120.0  # seconds
KEYS = {"Enter": "\ue007", "Escape": "\ue00c", "Tab": "\ue004", "Space": " "}


class Firefox:
    """A Firefox without a screen; see the commands of WebDriver."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
        self._file = self._socket.makefile("rwb")
        self._n_sent = 0
        self._read()  # who it is
        self.send("WebDriver:NewSession", {"capabilities": {"alwaysMatch": {}}})

    def send(self, command: str, values: dict[str, Any] | None = None) -> Any:
        """Send a command, and return what comes back."""
        self._n_sent += 1
        message = json.dumps([0, self._n_sent, command, values or {}]).encode()
        self._file.write(str(len(message)).encode() + b":" + message)
        self._file.flush()
        _, number, error, result = self._read()
        assert number == self._n_sent
        if error:
            raise RuntimeError(f"{command}: {error['message']}")
        is_plain = isinstance(result, dict) and set(result) == {"value"}
        return result["value"] if is_plain else result

    def _read(self) -> Any:
        length = b""
        while not length.endswith(b":"):
            length += self._file.read(1)
        return json.loads(self._file.read(int(length[:-1])))

    def goto(self, address: str) -> None:
        """Open an address."""
        self.send("WebDriver:Navigate", {"url": address})

    def evaluate(self, script: str, *given: Any) -> Any:
        """Return what a script returns; a promise is waited for."""
        body = {"script": script, "args": list(given), "newSandbox": False, "sandbox": None}
        return self.send("WebDriver:ExecuteScript", body)

    def text(self, place: str) -> str:
        """Return the text of an element."""
        return str(self.evaluate("return document.querySelector(arguments[0]).innerText", place))

    def press(self, key: str) -> None:
        """Press a key."""
        value = KEYS.get(key, key)
        keys = [{"type": "keyDown", "value": value}, {"type": "keyUp", "value": value}]
        action = {"type": "key", "id": "keyboard", "actions": keys}
        self.send("WebDriver:PerformActions", {"actions": [action]})

    def type(self, text: str) -> None:
        """Press the keys of a text."""
        for letter in text:
            self.press(letter)

    def resize(self, width: int, height: int) -> None:
        """Give the window a size."""
        self.send("WebDriver:SetWindowRect", {"width": width, "height": height})

    def wait_for(self, condition: str, *given: Any) -> None:
        """Wait until an expression is true."""
        end = time.monotonic() + PATIENCE
        while not self.evaluate(f"return Boolean({condition})", *given):
            assert time.monotonic() < end, condition
            time.sleep(0.03)

    def close(self) -> None:
        """End the connection."""
        self._socket.close()


@contextmanager
def launch_firefox() -> Iterator[Firefox]:
    """Start Debian's Firefox without a screen."""
    path = shutil.which("firefox-esr") or shutil.which("firefox")
    assert path is not None, 'mark the test with needs("firefox")'
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        lines = [f'user_pref("{k}", {json.dumps(value)});' for k, value in SETTINGS.items()]
        Path(profile, "user.js").write_text("\n".join(lines))
        command = [path, "--headless", "--marionette", "--no-remote", "--profile", profile]
        running = subprocess.Popen(
            [*command, "about:blank"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            firefox = Firefox(_find_port(Path(profile), running))
            yield firefox
            firefox.close()
        finally:
            running.terminate()
            running.wait()


def _find_port(profile: Path, running: "subprocess.Popen[bytes]") -> int:
    """Return the port that a Firefox writes into its profile once it listens."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and running.poll() is None:
        for name in ("MarionetteActivePort", "prefs.js"):
            file = profile / name
            text = file.read_text() if file.exists() else ""
            found = re.fullmatch(r"\s*(\d+)\s*", text) or re.search(
                r'"marionette\.port", (\d+)', text
            )
            if found and int(found[1]):
                return int(found[1])
        time.sleep(0.1)
    raise AssertionError("Firefox does not listen")
