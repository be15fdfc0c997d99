"""What a case is: something wrong is given to a command or function, and judged by what follows.

ok: refused in words that say what was wanted, what came or what to do (each case states some of
them), or handled, and a stated fact proves that rightly. unclear: refused without those words.
traceback: any other exception. silent: a success that says nothing of what is wrong, a result that
is not what it should be, or an input that changed.
"""

import io
import os
import re
import shlex
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Literal, NamedTuple

from sklearn.exceptions import NotFittedError

from comes.cli import main
from comes.errors import ComesError
from hostile.materials import copy_materials

Verdict = Literal["ok", "unclear", "traceback", "silent"]
Wanted = Literal["refused", "said", "handled"]
VERDICTS: tuple[Verdict, ...] = ("ok", "unclear", "traceback", "silent")
USAGE = 2  # the exit code of options that do not exist, with the usage


class RefusedError(Exception):
    """A command ended with another exit code than 0; its words are what it printed."""


class Place:
    """A folder with good files, where a case does harm."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._inputs: dict[Path, bytes] = {}

    def write(self, name: str, content: str | bytes) -> Path:
        """Write a file that no command may change."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return self.keep(name)

    def keep(self, name: str) -> Path:
        """Remember what a file holds: no command may change it."""
        path = self.folder / name
        self._inputs[path] = path.read_bytes()
        return path

    def has_kept_inputs(self) -> bool:
        """Return whether every input is as it was."""
        return all(p.exists() and p.read_bytes() == was for p, was in self._inputs.items())

    def comes(self, words: str) -> str:
        """Run a command; return what it printed, or raise that it was refused."""
        out, err = io.StringIO(), io.StringIO()
        before = sys.argv
        sys.argv = ["comes", *shlex.split(words)]
        try:
            with redirect_stdout(out), redirect_stderr(err):
                main()
        except SystemExit as end:
            if end.code not in (None, 0):
                printed = err.getvalue()
                raise RefusedError(_last_words(printed)) from None
        finally:
            sys.argv = before
        return out.getvalue() + err.getvalue()


Act = Callable[[Place], object]


@dataclass(frozen=True)
class Case:
    """Something wrong, and what must become of it.

    Attributes
    ----------
    area, name : str
    act : function of a Place
        Does it. What it returns proves a handled case right; text it returns counts as said.
    wanted : "refused", "said" (refused, or a sentence) or "handled"
    words : regular expression that the message must have
    """

    area: str
    name: str
    act: Act
    wanted: Wanted
    words: str


class Judged(NamedTuple):
    """What became of a case, with the words that came."""

    verdict: Verdict
    came: str


CASES: list[Case] = []


def refused(area: str, words: str) -> Callable[[Act], Act]:
    """Keep a case that must be refused in a message with these words."""
    return _keeper(area, "refused", words)


def said(area: str, words: str) -> Callable[[Act], Act]:
    """Keep a case that must be refused, or about which a sentence with these words must be said."""
    return _keeper(area, "said", words)


def handled(area: str) -> Callable[[Act], Act]:
    """Keep a case that must work: its function returns whether the result is right."""
    return _keeper(area, "handled", "")


def refused_commands(area: str, commands: Mapping[str, tuple[str, str]]) -> None:
    """Keep cases of one command each on good files: name to the command and the words wanted."""
    for name, (command, words) in commands.items():
        CASES.append(Case(area, name, _run_one(command), "refused", words))


def said_commands(area: str, commands: Mapping[str, tuple[str, str]]) -> None:
    """Keep cases of one command each about which something must be said."""
    for name, (command, words) in commands.items():
        CASES.append(Case(area, name, _run_one(command), "said", words))


def judge(case: Case) -> Judged:
    """Do what a case does in a new folder, and judge what follows."""
    with _in_new_folder() as folder, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        place = Place(folder)
        for path in copy_materials(folder):
            place.keep(path.name)
        try:
            result = case.act(place)
        except (ComesError, NotFittedError, RefusedError) as error:
            return _judge_refusal(case, place, " ".join(str(error).split()))
        except Exception as error:
            place_of_error = traceback.extract_tb(error.__traceback__)[-1]
            came = f"{type(error).__name__}: {error} ({place_of_error.name})"
            return Judged("traceback", " ".join(came.split()))
        heard = " ".join(str(warning.message) for warning in caught)
        if not place.has_kept_inputs():
            return Judged("silent", "an input has changed")
        if case.wanted == "handled":
            return Judged("ok" if result else "silent", f"returned {result!r} {heard}")
        heard += result if isinstance(result, str) else ""
        is_said = case.wanted == "said" and re.search(case.words, heard, re.IGNORECASE)
        return Judged("ok" if is_said else "silent", " ".join(heard.split()) or "nothing was said")


def _judge_refusal(case: Case, place: Place, came: str) -> Judged:
    if not place.has_kept_inputs():
        return Judged("silent", f"an input has changed; {came}")
    is_clear = case.wanted != "handled" and re.search(case.words, came, re.IGNORECASE)
    return Judged("ok" if is_clear else "unclear", came)


def _last_words(printed: str) -> str:
    """Return the error at the end of what was printed, without the usage."""
    words = " ".join(printed.split())
    return words[words.find("Error: ") :] if "Error: " in words else words


def _keeper(area: str, wanted: Wanted, words: str) -> Callable[[Act], Act]:
    def keep(act: Act) -> Act:
        name = act.__name__.strip("_").replace("_", " ")
        CASES.append(Case(area, name, act, wanted, words))
        return act

    return keep


def _run_one(command: str) -> Act:
    return lambda place: place.comes(command)


@contextmanager
def _in_new_folder() -> Iterator[Path]:
    before = Path.cwd()
    with tempfile.TemporaryDirectory(prefix="comes-hostile-") as folder:
        os.chdir(folder)
        try:
            yield Path(folder)
        finally:
            os.chdir(before)


def all_cases() -> list[Case]:
    """Return the cases of all areas: of the modules here whose names end in ``_cases``."""
    for module in sorted(Path(__file__).parent.glob("*_cases.py")):
        import_module(f"hostile.{module.stem}")
    return CASES
