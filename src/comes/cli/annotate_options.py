"""What the commands of ``comes annotate`` share."""

from pathlib import Path
from typing import Annotated

import typer

Folder = Annotated[Path, typer.Argument(help="Folder of the project.")]
Host = Annotated[
    str, typer.Option(help="Address to serve on; any address but loopback needs a token.")
]
Port = Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 takes a free one.")]
