"""Errors name options of the command that was called, not those of others."""

import re
from collections.abc import Sequence
from typing import Any

OPTION = re.compile(r"--[a-z][a-z-]*")
BRACKETS = re.compile(r" ?\(([^()]*--[a-z][^()]*)\)")


def drop_foreign_options(message: str, command: Any, arguments: Sequence[str]) -> str:
    """Return a message without brackets that name an option which the command does not have.

    Jobs serve several commands and notebooks, so their messages name all options that may help.
    """
    known = find_options(command, arguments)
    if not known:
        return message
    return BRACKETS.sub(lambda found: _keep(found, known), message)


def find_options(command: Any, arguments: Sequence[str]) -> set[str]:
    """Return the options of the command that arguments name; none if they name no command."""
    words = [word for word in arguments if not word.startswith("-")]
    while hasattr(command, "commands"):
        if words and words[0] in command.commands:
            command = command.commands[words.pop(0)]
        elif words and "show" in command.commands:  # comes datasets photos.csv
            command = command.commands["show"]
        else:
            return set()
    return {name for parameter in command.params for name in parameter.opts}


def _keep(found: "re.Match[str]", known: set[str]) -> str:
    return found[0] if set(OPTION.findall(found[1])) <= known else ""
