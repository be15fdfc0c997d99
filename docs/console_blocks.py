"""Console blocks of documents: commands behind ``$``, and the output that they print.

    python docs/console_blocks.py README.md docs/start/first-model.md    # write the outputs anew

The commands of a document run in order, in one folder. The tests run them, too, and compare.
"""

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

BLOCK = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^\$ ((?:[^\n]*\\\n)*[^\n]*)\n(.*?)(?=^\$ |\Z)", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?!\w)")
SECONDS = re.compile(r"(?m)^(seconds: ).*$")
TOLERANCE = 0.1  # of shares; other machines add up in another order
# A part of a pipe that the next one closes early (141: SIGPIPE) has not failed.
CHECK_PIPE = """
codes=("${PIPESTATUS[@]}"); last=$((${#codes[@]} - 1))
for part in "${!codes[@]}"; do
  code=${codes[part]}
  if ((code != 0 && (code != 141 || part == last))); then exit "$code"; fi
done"""


def main(documents: Sequence[str]) -> None:
    """Run the commands of documents, and write what they print."""
    for name in documents:
        path = Path(name)
        with tempfile.TemporaryDirectory() as folder:
            text = path.read_text(encoding="utf-8")
            path.write_text(fill_outputs(text, Path(folder)), encoding="utf-8")


def fill_outputs(text: str, folder: Path) -> str:
    """Return a document in which every command shows what it prints in this folder."""

    def run_one(command: re.Match[str]) -> str:
        return f"$ {command[1]}\n{_strip_margins(run_in_shell(command[1], folder))}"

    def run_block(block: re.Match[str]) -> str:
        return f"```console\n{COMMAND.sub(run_one, block[1])}```"

    return BLOCK.sub(run_block, text)


def find_commands(text: str) -> list[tuple[str, str]]:
    """Return the commands of a document, each with the output that it shows."""
    return [command for block in BLOCK.findall(text) for command in COMMAND.findall(block)]


def run_in_shell(command: str, folder: Path) -> str:
    """Return what a command prints to both streams; it must succeed."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", f"{command}{CHECK_PIPE}"],
        cwd=folder,
        env=os.environ | {"PATH": path, "COLUMNS": "100", "TERM": "dumb"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}"
    return done.stdout


def assert_same_outputs(text: str, folder: Path) -> None:
    """Run the commands; compare words exactly, numbers roughly, and times not at all."""
    shown, printed = (
        SECONDS.sub(r"\1–", "".join(BLOCK.findall(one)))
        for one in (text, fill_outputs(text, folder))
    )
    assert NUMBER.sub("0", _squeeze(printed)) == NUMBER.sub("0", _squeeze(shown))
    for one, other in zip(NUMBER.findall(printed), NUMBER.findall(shown), strict=True):
        far = max(TOLERANCE, 0.1 * abs(float(other)))
        assert abs(float(one) - float(other)) <= far, (one, other, printed)


def _squeeze(text: str) -> str:
    """Return a text with single spaces and short rules: the width of a table depends on numbers."""
    return re.sub(r"─+", "─", re.sub(r" +", " ", text))


def _strip_margins(text: str) -> str:
    """Return a text without empty lines and without spaces at the ends of lines."""
    return "".join(f"{line.rstrip()}\n" for line in text.splitlines() if line.strip())


if __name__ == "__main__":
    main(sys.argv[1:])
