"""The annotation page: ask people plain questions, and hand their answers on to training.

A project is a folder with its items, its classes and a database of cards, each of which asks about
one class of one item. People answer cards on a page in the browser.

What is here is loaded on first use: who exports answers does not wait for the web server.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from comes.annotate.exchange import (
        collect_answers,
        collect_data,
        export_answers,
        import_answers,
    )
    from comes.annotate.grow import add_classes, add_items, estimate_shares, set_controls
    from comes.annotate.project import Project, create_project, open_project
    from comes.annotate.summary import summarise
    from comes.annotate.trial import trial_project
    from comes.annotate.web.server import serve, serve_in_thread

_MODULES = {
    "Project": "project",
    "add_classes": "grow",
    "add_items": "grow",
    "collect_answers": "exchange",
    "collect_data": "exchange",
    "create_project": "project",
    "estimate_shares": "grow",
    "export_answers": "exchange",
    "import_answers": "exchange",
    "open_project": "project",
    "serve": "web.server",
    "serve_in_thread": "web.server",
    "set_controls": "grow",
    "summarise": "summary",
    "trial_project": "trial",
}

__all__ = [
    "Project",
    "add_classes",
    "add_items",
    "collect_answers",
    "collect_data",
    "create_project",
    "estimate_shares",
    "export_answers",
    "import_answers",
    "open_project",
    "serve",
    "serve_in_thread",
    "set_controls",
    "summarise",
    "trial_project",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'comes.annotate' has no attribute {name!r}")
    try:
        return getattr(import_module(f"comes.annotate.{_MODULES[name]}"), name)
    except ModuleNotFoundError as error:
        from comes.errors import ComesError

        raise ComesError(
            f"annotation needs {error.name}, which is not installed: pip install 'comes[annotate]'."
        ) from None


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
