"""Commands of ``comes annotate`` for a team: serve the page, and say who may do what."""

import json
import time
from pathlib import Path
from typing import Annotated, Literal

import typer

from comes.cli.annotate_options import Folder, Host, Port
from comes.cli.options import Json, split_names
from comes.cli.printing import print_json, print_rows, print_summary

ADDRESSES = "addresses"  # the setting that holds where a project was served last
ROLE_TITLES = {"annotator": "annotators", "lead": "the lead", "script": "scripts"}


def serve(
    folder: Folder,
    host: Host = "127.0.0.1",
    port: Port = 8000,
    lease: Annotated[
        float, typer.Option(min=1, help="Seconds after which cards of a closed browser come back.")
    ] = 300,
    address: Annotated[
        str | None, typer.Option(help="What people open, if not this machine, as behind a proxy.")
    ] = None,
    token: Annotated[
        bool, typer.Option("--token", help="Ask for a token on loopback too, as behind a proxy.")
    ] = False,
    new_token: Annotated[
        bool, typer.Option("--new-token", help="Revoke all links, and make new ones.")
    ] = False,
    certificate: Annotated[
        str | None, typer.Option(help="Certificate (.pem) with its chain, for https; with --key.")
    ] = None,
    key: Annotated[str | None, typer.Option(help="Key (.pem) of the certificate.")] = None,
    proxy: Annotated[
        str | None,
        typer.Option(help="Addresses of proxies whose X-Forwarded headers are believed."),
    ] = None,
) -> None:
    """Serve the page until Ctrl-C.

    Example: comes annotate serve project

    Example: comes annotate serve project --host 0.0.0.0 --port 8000
    """
    from comes.annotate import (
        ServerOptions,
        check_images_exist,
        find_links,
        list_addresses,
        open_port,
        open_project,
    )
    from comes.annotate import serve as serve_project

    options = ServerOptions(certificate, key, tuple(split_names(proxy) or ()))
    project = open_project(folder)
    listener = open_port(host, port)
    check_images_exist(project)
    made = find_links(project, host, is_wanted=token, new=new_token)
    found = list_addresses(host, listener.getsockname()[1], options.scheme)
    addresses = [address.rstrip("/")] if address else found
    project.write_setting(ADDRESSES, json.dumps(addresses))
    _print_addresses(str(folder), addresses, made)
    serve_project(project, listener, made is not None, lease, options)


def _print_addresses(folder: str, addresses: list[str], made: dict[str, str] | None) -> None:
    """Print what people open, with the tokens of new links."""
    from comes.annotate import is_private

    print(f"{Path(folder).resolve().name}: {addresses[0]}/", flush=True)
    for role, token in (made or {}).items():
        print(f"  for {ROLE_TITLES[role]}: {addresses[0]}/?token={token}")
    if others := addresses[1:]:
        print(f"The same on other addresses of this machine: {', '.join(others)}")
    if is_private(addresses[0]) and made is not None and not addresses[0].count("127.0.0"):
        print(
            "This address is one of a private network: people in it can open it. For others, "
            "forward a port of the router, or use a VPN or a proxy (--address)."
        )
    if made:
        print("Keep these links: a token is shown once.")
    elif made is not None:
        print("The links made before are still valid.")
    if made is not None:
        print(
            f"Another link, beside those: comes annotate link {folder} --role annotator --for NAME",
            flush=True,
        )


def link(
    folder: Folder,
    name: Annotated[str, typer.Option("--for", help="Whom the link is for.")],
    role: Annotated[
        Literal["annotator", "lead", "script"],
        typer.Option(help="What it opens: the cards; the lead's pages too; or /api/v1."),
    ] = "annotator",
    address: Annotated[
        str | None, typer.Option(help="Where the project is served; by default, where it was last.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Make another link that lets somebody in; those made before stay valid.

    Example: comes annotate link project --role annotator --for Ada
    """
    from comes.annotate import make_link, open_project

    project = open_project(folder)
    token = make_link(project, role, name)
    known = json.loads(project.read_setting(ADDRESSES) or '["http://127.0.0.1:8000"]')
    start = (address or known[0]).rstrip("/")
    way = {"link": f"{start}/?token={token}"}
    if role == "script":
        way = {"address": f"{start}/api/v1", "header": f"Authorization: Bearer {token}"}
    print_summary({"role": role, "for": name, **way}, as_json)


def links(
    folder: Folder,
    revoke: Annotated[
        str | None, typer.Option(help="Revoke the link of this number, or of this name.")
    ] = None,
    as_json: Json = False,
) -> None:
    """List who can open the page, and revoke links.

    Example: comes annotate links project --revoke Ada
    """
    from comes.annotate import list_links, open_project, revoke_links

    project = open_project(folder)
    if revoke is not None:
        revoke_links(project, revoke)
    rows = [
        {
            "number": link.number,
            "role": link.role,
            "for": link.label,
            "made": _print_time(link.made_at),
            "revoked": _print_time(link.revoked_at),
        }
        for link in list_links(project)
    ]
    if as_json:
        print_json(rows)
    elif rows:
        print_rows(rows)
    else:
        print(f"{project.name} has no links yet. comes annotate serve makes some.")


def _print_time(moment: float | None) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(moment)) if moment else "–"


def people(
    folder: Folder,
    leave_out: Annotated[
        str | None, typer.Option(help="Let the answers of this person count for nothing.")
    ] = None,
    take_in: Annotated[
        str | None, typer.Option(help="Let the answers of this person count again.")
    ] = None,
    as_json: Json = False,
) -> None:
    """List who answered and how: pace, habits, agreement with others, control cards.

    Example: comes annotate people project

    Example: comes annotate people project --leave-out Ada
    """
    from comes.annotate import open_project, set_left_out, summarise

    project = open_project(folder)
    if leave_out is not None:
        set_left_out(project, leave_out)
    if take_in is not None:
        set_left_out(project, take_in, False)
    found = summarise(project).people
    if as_json:
        print_json([vars(person) for person in found])
        return
    rows = [
        {
            "name": person.name,
            "answers": person.n_answers,
            "no": f"{person.share_no:.0%}",
            "cannot tell": f"{person.share_maybe:.0%}",
            "yes": f"{person.share_yes:.0%}",
            "seconds": round(person.seconds, 1),
            "agrees": f"{person.agreement:.0%} of {person.n_pairs}" if person.n_pairs else "–",
            "controls": f"{person.n_right} of {person.n_controls}" if person.n_controls else "–",
            "counts": "left out" if person.is_left_out else "yes",
        }
        for person in found
    ]
    if rows:
        print_rows(rows)
    for person in found:
        for warning in person.warnings:
            print(f"{person.name}: {warning}.")
    if not found:
        print(f"Nobody has answered in {project.name} yet.")


def freeze(
    folder: Folder,
    undo: Annotated[bool, typer.Option("--undo", help="Give cards to people again.")] = False,
    as_json: Json = False,
) -> None:
    """Give no more cards to people, so that what is exported stays what it is.

    Example: comes annotate freeze project
    """
    from comes.annotate import open_project, set_frozen

    set_frozen(open_project(folder), not undo)
    print_summary({"frozen": "no" if undo else "yes"}, as_json)


def control(
    folder: Folder,
    known: Annotated[Path, typer.Argument(help="A table of item, label and answer (no, yes).")],
    share: Annotated[
        float, typer.Option(help="Share of the cards of each person that are control cards.")
    ] = 0.05,
    as_json: Json = False,
) -> None:
    """Mix cards with known answers in, to see how well each person answers.

    Example: comes annotate control project known.csv --share 0.05
    """
    from comes.annotate import open_project, set_controls

    count = set_controls(open_project(folder), known, share)
    print_summary({"control_cards": count, "share": share}, as_json)


def decide(
    folder: Folder,
    decisions: Annotated[
        Path | None, typer.Argument(help="A table of item, label and answer (no, maybe, yes).")
    ] = None,
    name: Annotated[str, typer.Option("--as", help="Who decides.")] = "the lead",
    as_json: Json = False,
) -> None:
    """List pairs that people disagree on, or store what the lead decides about them.

    Example: comes annotate decide project

    Example: comes annotate decide project decisions.csv
    """
    from comes.annotate import decide_pairs, list_disagreements, open_project

    project = open_project(folder)
    if decisions is not None:
        print_summary({"decided": decide_pairs(project, decisions, name)}, as_json)
        return
    rows = list_disagreements(project)
    if as_json:
        print_json(rows)
    elif rows:
        print_rows(rows)
    else:
        print(f"People disagree on nothing in {project.name}, or all of it is decided.")
