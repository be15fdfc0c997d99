"""The annotation page: ask people plain questions, and hand their answers on to training.

A project is a folder with its items, its classes and a database of cards, each of which asks about
one class of one item. People answer cards on a page in the browser.

What is here is loaded on first use: who exports answers does not wait for the web server.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from comes.annotate.asking import Asking, change_asking, read_question
    from comes.annotate.cards import (
        add_chosen_cards,
        add_random_cards,
        reopen_skipped_cards,
        sample_cards,
        set_controls,
    )
    from comes.annotate.exchange import (
        collect_answers,
        collect_data,
        export_answers,
        export_raw_answers,
        import_answers,
        read_raw_answers,
    )
    from comes.annotate.grow import (
        add_active_cards,
        add_classes,
        add_items,
        count_new_answers,
        count_rounds,
        estimate_shares,
        find_open_pairs,
    )
    from comes.annotate.items import ItemSource
    from comes.annotate.lead import decide_pairs, list_disagreements, set_frozen, set_left_out
    from comes.annotate.links import Link, list_links, make_link, revoke_links
    from comes.annotate.project import Project, create_project, open_project
    from comes.annotate.summary import Summary, summarise
    from comes.annotate.trial import trial_project
    from comes.annotate.web.lead import describe_summary, tabulate_classes, write_overview
    from comes.annotate.web.server import (
        make_app,
        serve,
        serve_in_thread,
    )

_MODULES = {
    "Asking": "asking",
    "ItemSource": "items",
    "Link": "links",
    "Project": "project",
    "Summary": "summary",
    "add_active_cards": "grow",
    "add_chosen_cards": "cards",
    "add_classes": "grow",
    "add_items": "grow",
    "add_random_cards": "cards",
    "change_asking": "asking",
    "collect_answers": "exchange",
    "collect_data": "exchange",
    "count_new_answers": "grow",
    "count_rounds": "grow",
    "create_project": "project",
    "decide_pairs": "lead",
    "describe_summary": "web.lead",
    "estimate_shares": "grow",
    "export_answers": "exchange",
    "export_raw_answers": "exchange",
    "find_open_pairs": "grow",
    "import_answers": "exchange",
    "list_disagreements": "lead",
    "list_links": "links",
    "make_app": "web.server",
    "make_link": "links",
    "open_project": "project",
    "read_question": "asking",
    "read_raw_answers": "exchange",
    "reopen_skipped_cards": "cards",
    "revoke_links": "links",
    "sample_cards": "cards",
    "serve": "web.server",
    "serve_in_thread": "web.server",
    "set_controls": "cards",
    "set_frozen": "lead",
    "set_left_out": "lead",
    "summarise": "summary",
    "tabulate_classes": "web.lead",
    "trial_project": "trial",
    "write_overview": "web.lead",
}

__all__ = [
    "Asking",
    "ItemSource",
    "Link",
    "Project",
    "Summary",
    "add_active_cards",
    "add_chosen_cards",
    "add_classes",
    "add_items",
    "add_random_cards",
    "change_asking",
    "collect_answers",
    "collect_data",
    "count_new_answers",
    "count_rounds",
    "create_project",
    "decide_pairs",
    "describe_summary",
    "estimate_shares",
    "export_answers",
    "export_raw_answers",
    "find_open_pairs",
    "import_answers",
    "list_disagreements",
    "list_links",
    "make_app",
    "make_link",
    "open_project",
    "read_question",
    "read_raw_answers",
    "reopen_skipped_cards",
    "revoke_links",
    "sample_cards",
    "serve",
    "serve_in_thread",
    "set_controls",
    "set_frozen",
    "set_left_out",
    "summarise",
    "tabulate_classes",
    "trial_project",
    "write_overview",
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
