"""A tiny project to try things on, in a temporary folder."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from comes.annotate.exchange import import_answers
from comes.annotate.project import Project, create_project


@contextmanager
def trial_project(rate: float = 1) -> Iterator[Project]:
    """Give a project of two texts and two classes, which is deleted at the end.

    One question is answered: the text about rain is surely not about sport.

    Parameters
    ----------
    rate : float
        Share of the texts that are asked about each class.

    Examples
    --------
    >>> with trial_project() as project:
    ...     print(project.item_names, project.class_names, project.count_cards())
    ['rain', 'goal'] ['sport', 'weather'] 4
    """
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        (home / "texts.csv").write_text("item,text\nrain,It rains.\ngoal,They scored.\n")
        (home / "classes.txt").write_text("sport\nweather\n")
        (home / "answers.csv").write_text("item,label,answer\nrain,sport,no\n")
        sources = home / "texts.csv", home / "classes.txt"
        project = create_project(home / "news", *sources, rate=rate)
        try:
            import_answers(project, home / "answers.csv")
            yield project
        finally:
            project.engine.dispose()
