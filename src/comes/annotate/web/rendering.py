"""Pages from templates. Names and texts are escaped, so that they are never markup."""

import math
import time
from functools import lru_cache
from typing import Any

import jinja2

from comes.annotate.class_counts import ENOUGH
from comes.annotate.languages import read_words


def render(template: str, **values: Any) -> str:
    """Return a page."""
    return _make_environment().get_template(template).render(values)


def write_duration(seconds: float) -> str:
    """Return a time that people can plan with: 40 s, 25 min, 3 h, 2 days of 8 h."""
    if math.isnan(seconds):
        return "–"
    if seconds < 90:
        return f"{math.ceil(seconds)} s"
    if seconds < 90 * 60:
        return f"{math.ceil(seconds / 60)} min"
    if seconds < 16 * 3600:
        return f"{seconds / 3600:.1f} h"
    return f"{math.ceil(seconds / 8 / 3600)} days of 8 h"


@lru_cache
def _make_environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("comes.annotate.web", "pages"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals["enough"] = ENOUGH
    environment.globals["words"] = read_words("en")  # where a page does not say otherwise
    environment.filters["share"] = lambda x: "–" if math.isnan(x) else f"{x:.0%}"
    environment.filters["number"] = lambda x: "–" if math.isnan(x) else f"{x:.2f}"
    environment.filters["seconds"] = lambda x: "–" if math.isnan(x) else f"{x:.1f} s"
    environment.filters["duration"] = write_duration
    environment.filters["plain"] = lambda word: "cannot tell" if word == "maybe" else word
    environment.filters["time"] = lambda x: time.strftime("%d %b %H:%M", time.localtime(x))
    return environment
