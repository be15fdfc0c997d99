"""What the commands of ``comes annotate`` share."""

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
    try:
        import sqlalchemy  # noqa: F401
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise ComesError(
            f"the annotation page needs {error.name}: pip install 'comes[annotate]'."
        ) from None
