"""Commands of ``comes annotate`` for a team: serve the page, and say who may do what."""

from typing import Annotated

import typer

from comes.cli.annotate_options import Folder, Host, Port, check_extra


def serve(
    folder: Folder,
    host: Host = "127.0.0.1",
    port: Port = 8000,
    lease: Annotated[
        float, typer.Option(min=1, help="Seconds after which cards of a closed browser come back.")
    ] = 300,
    token: Annotated[
        bool, typer.Option("--token", help="Ask for the token on loopback too, as behind a proxy.")
    ] = False,
    new_token: Annotated[
        bool, typer.Option("--new-token", help="Make a new token; the old one stops working.")
    ] = False,
) -> None:
    """Serve the page until Ctrl-C.

    Example: comes annotate serve project

    Example: comes annotate serve project --host 0.0.0.0 --port 8000
    """
    check_extra()
    from comes.annotate import address_of, check_images_exist, find_token, open_port, open_project
    from comes.annotate import serve as serve_project

    project = open_project(folder)
    listener = open_port(host, port)
    check_images_exist(project)
    digest, made = find_token(project, host, is_wanted=token, new=new_token)
    address = address_of(host, listener.getsockname()[1])
    print(f"{project.name}: {address}/{f'?token={made}' if made else ''}", flush=True)
    if made:
        print("Keep this address: the token is shown once.", flush=True)
    elif digest:
        print(
            "Browsers that have opened the address with its token still get in. For others, "
            "--new-token makes a new token, which everybody then needs.",
            flush=True,
        )
    serve_project(project, listener, digest, lease)
