"""What the commands of ``comes annotate`` share."""

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from comes.errors import ComesError

Folder = Annotated[Path, typer.Argument(help="Folder of the project.")]
Host = Annotated[
    str, typer.Option(help="Address to serve on; any address but loopback needs a token.")
]
Port = Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 takes a free one.")]


def check_extra() -> None:
    """Raise if a package of the annotation page is missing, and say what to install."""
    for package in ("sqlalchemy", "starlette", "uvicorn"):
        if find_spec(package) is None:
            raise ComesError(f"the annotation page needs {package}: pip install 'comes[annotate]'.")
