"""Whole jobs on embedded data: training on candidates, and the way from questions to a model.

Of all pairs of scene and digit, a share of `ASKED_RATE` is asked about. People who try the page get
drawn scenes.
"""

from comes.demo.circle import Circle, Learned, annotate_by_robots, make_project
from comes.demo.comparison import ASKED_RATE, DemoRow, run_demo
from comes.demo.drawn_scenes import make_drawn_project, serve_scenes

__all__ = [
    "ASKED_RATE",
    "Circle",
    "DemoRow",
    "Learned",
    "annotate_by_robots",
    "make_drawn_project",
    "make_project",
    "run_demo",
    "serve_scenes",
]
