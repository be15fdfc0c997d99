"""Groups of options that a command takes as one value."""

import functools
import inspect
from collections.abc import Callable
from typing import Any


def takes_options(**groups: Callable[..., Any]) -> Callable[..., Callable[..., None]]:
    """Add the parameters of functions to the options of a command.

    ``@takes_options(reading=reading_options)`` adds every parameter of `reading_options` to the
    command line; the command gets what the function returns as ``reading``.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        own = inspect.signature(command).parameters
        shared = {name: inspect.signature(make).parameters for name, make in groups.items()}

        @functools.wraps(command)
        def with_options(**values: Any) -> None:
            made = {
                name: make(**{option: values.pop(option) for option in shared[name]})
                for name, make in groups.items()
            }
            command(**values, **made)

        parameters = [p for p in own.values() if p.name not in groups]
        parameters += [p for options in shared.values() for p in options.values()]
        by_keyword = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in parameters]
        with_options.__signature__ = inspect.Signature(by_keyword)  # type: ignore[attr-defined]
        with_options.__annotations__ = {p.name: p.annotation for p in by_keyword}
        return with_options

    return decorate
