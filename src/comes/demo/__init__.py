"""Whole jobs on embedded data: training on candidates, and the way from questions to a model.

Of all pairs of scene and digit, a share of `ASKED_RATE` is asked about.
"""

from comes.demo.circle import Circle, annotate_by_robots, make_project, serve_scenes
from comes.demo.comparison import ASKED_RATE, DemoRow, run_demo

__all__ = [
    "ASKED_RATE",
    "Circle",
    "DemoRow",
    "annotate_by_robots",
    "make_project",
    "run_demo",
    "serve_scenes",
]
