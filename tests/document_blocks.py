"""Blocks of code in the documents, run inside a test."""

import re
import shlex
import warnings
from pathlib import Path
from typing import Any

from comes.errors import ComesWarning
from command_line import Run

BLOCK = re.compile(r"^```(python|bash)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def run_blocks(document: Path, run: Run) -> None:
    """Run the blocks of a document in order; they share their names, and bash calls comes."""
    names: dict[str, Any] = {"__name__": document.stem}
    for language, code in BLOCK.findall(document.read_text(encoding="utf-8")):
        if language == "python":
            exec(compile(code, document.name, "exec"), names)
            continue
        for line in code.splitlines():
            program, *arguments = shlex.split(line)
            assert program == "comes"
            with warnings.catch_warnings():
                warnings.simplefilter("default", ComesWarning)  # printed, as on a terminal
                run(*arguments)
