"""The page for a person to try, with drawn scenes."""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from comes.datasets import Dataset
from comes.demo.drawings import CLASSES, draw_scene
from comes.progress import progress_bar

if TYPE_CHECKING:
    from comes.annotate import Project

RATE = 0.5  # of the scenes for each class: with 300 of them, a hundred exclusions are reachable


def make_drawn_project(
    folder: Path, n_scenes: int = 300, seed: int = 0, *, progress: bool | None = None
) -> "tuple[Project, Dataset]":
    """Make a project of drawn scenes in a folder; return it with what they show.

    Parameters
    ----------
    folder : Path
        Gets the pictures, the classes and the project ``scenes``.
    n_scenes, seed : int
    progress : bool, optional
        Show a progress bar; by default if standard error is a terminal.

    Returns
    -------
    project : comes.annotate.Project
    truth : Dataset
        True labels of the scenes, without features.

    Examples
    --------
    >>> project, truth = make_drawn_project(Path(tempfile.mkdtemp()), n_scenes=4)
    >>> project.class_names[:3], project.count_cards(), len(truth)
    (['boat', 'house', 'tree'], 16, 4)
    >>> project.engine.dispose()
    """
    from comes.annotate import create_project

    pictures, rng = folder / "pictures", np.random.default_rng(seed)
    pictures.mkdir()
    names = [f"scene-{number:03}.jpg" for number in range(1, n_scenes + 1)]
    relevant = np.zeros((n_scenes, len(CLASSES)), dtype=bool)
    with progress_bar(n_scenes, "pictures", show=progress) as advance:
        for name, row in zip(names, relevant, strict=True):
            shown = draw_scene(rng, pictures / name)
            row[:] = [one in shown for one in CLASSES]
            advance()
    rows = "\n".join(f'{name},"{description}"' for name, description in CLASSES.items())
    (folder / "classes.csv").write_text(f"class,description\n{rows}\n", encoding="utf-8")
    sources = pictures, folder / "classes.csv"
    project = create_project(folder / "scenes", *sources, rate=RATE, seed=seed)
    return project, Dataset(None, list(CLASSES), relevant=relevant, items=names)


def serve_scenes(
    n_scenes: int, port: int, seed: int, announce: Callable[[str], None] = lambda address: None
) -> None:
    """Serve the page with drawn scenes, for a person to try, until it is interrupted.

    Parameters
    ----------
    n_scenes : int
    port : int
        0 takes a free one.
    seed : int
    announce : callable (address) -> None
        Called with the address just before the page is served.

    Examples
    --------
    >>> def announce(address):
    ...     print(address.startswith("http://127.0.0.1:"))
    ...     raise KeyboardInterrupt  # as a person would
    >>> try:
    ...     serve_scenes(20, port=0, seed=0, announce=announce)
    ... except KeyboardInterrupt:
    ...     print("the answers are forgotten")
    True
    the answers are forgotten
    """
    from comes.annotate import address_of, open_port, serve

    with open_port("127.0.0.1", port) as listener, tempfile.TemporaryDirectory() as home:
        project, _ = make_drawn_project(Path(home), n_scenes, seed)
        announce(address_of("127.0.0.1", listener.getsockname()[1]))
        serve(project, listener)
