"""The annotation page: ask people plain questions, and hand their answers on to training.

A project is a folder with its items, its classes and a database of cards, each of which asks about
one class of one item. People answer cards on a page in the browser.

What is here is loaded on first use: who exports answers does not wait for the web server.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from comes.annotate.exchange import collect_answers, export_answers, import_answers
    from comes.annotate.grow import add_classes, add_items, estimate_shares, set_controls
    from comes.annotate.project import Project, create_project, open_project
    from comes.annotate.summary import summarise
    from comes.annotate.web.server import serve, serve_in_thread

__all__ = [
    "Project",
    "add_classes",
    "add_items",
    "collect_answers",
    "create_project",
    "estimate_shares",
    "export_answers",
    "import_answers",
    "open_project",
    "serve",
    "serve_in_thread",
    "set_controls",
    "summarise",
]
# Where these are; what is quick to load comes first.
_MODULES = ("project", "exchange", "grow", "summary", "web.server")


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'comes.annotate' has no attribute {name!r}")
    modules = (import_module(f"comes.annotate.{module}") for module in _MODULES)
    try:
        return next(getattr(module, name) for module in modules if hasattr(module, name))
    except ModuleNotFoundError as error:
        from comes.errors import ComesError

        raise ComesError(
            f"annotation needs {error.name}, which is not installed: pip install 'comes[annotate]'."
        ) from None


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
