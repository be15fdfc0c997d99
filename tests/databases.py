"""A private PostgreSQL server, for tests that are marked ``needs("postgresql")``."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

from sqlalchemy import create_engine, text
from sqlalchemy.exc import OperationalError

STARTING = 120.0  # seconds


class PostgreSQL:
    """A running server, which trusts everybody on this machine."""

    def __init__(self, home: Path, binaries: Path) -> None:
        self.home, self._binaries = home, binaries
        self._who: dict[str, Any] = {}
        if os.getuid() == 0:  # it refuses to run as root
            self._who = {"user": "postgres", "group": "postgres", "extra_groups": []}
            shutil.chown(home, "postgres", "postgres")
        self._counter = count()
        self._reserved = reserve_port()
        self.port: int = self._reserved.getsockname()[1]
        options = ("--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8", "--no-sync")
        subprocess.run(
            [binaries / "initdb", "-D", home / "data", "-U", "postgres", *options],
            check=True,
            stdout=subprocess.DEVNULL,
            cwd=home,
            **self._who,
        )
        self._process = self._start()

    def address(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    def new_database(self) -> str:
        """Return the address of a new, empty schema: as good as a database, and much cheaper."""
        name = f"test_{next(self._counter)}"
        self._run(f"CREATE SCHEMA {name}")
        return f"{self.address()}?options=-csearch_path%3D{name}"

    def stop(self) -> None:
        self._process.send_signal(signal.SIGINT)
        self._process.wait()
        self._reserved.close()

    def _start(self) -> "subprocess.Popen[bytes]":
        """Start until it stays: after a crash, what is left of the last one goes away slowly."""
        until = time.monotonic() + STARTING
        settings = ("listen_addresses=127.0.0.1", "unix_socket_directories=", "fsync=off")
        program, data = str(self._binaries / "postgres"), str(self.home / "data")
        command = [program, "-D", data, "-p", str(self.port)]
        for setting in settings:
            command += ["-c", setting]
        while True:
            with (self.home / "log").open("ab") as log:
                process = subprocess.Popen(
                    command, stdout=log, stderr=log, cwd=self.home, **self._who
                )
            while process.poll() is None:
                try:
                    self._run("SELECT 1")
                    return process
                except OperationalError:
                    time.sleep(0.02)
                if time.monotonic() > until:
                    process.kill()
            if time.monotonic() > until:
                process.wait()
                raise RuntimeError((self.home / "log").read_text()[-2000:])
            time.sleep(0.05)

    def _run(self, command: str) -> None:
        address = self.address().replace("postgresql:", "postgresql+psycopg:")
        engine = create_engine(address, isolation_level="AUTOCOMMIT")
        try:
            with engine.connect() as connection:
                connection.execute(text(command))
        finally:
            engine.dispose()


def reserve_port() -> socket.socket:
    """Return a socket that keeps a port free for a server that is started later.

    No other program is given the port while the socket is open. As it does not listen, a server
    that binds with SO_REUSEADDR, as all do that are used here, may listen there.
    """
    reserved = socket.socket()
    reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    reserved.bind(("127.0.0.1", 0))
    return reserved


def find_postgresql() -> Path | None:
    """Return the folder of the newest PostgreSQL's programs, if there is one."""
    found = Path("/usr/lib/postgresql").glob("*/bin/postgres")
    newest = sorted(found, key=lambda path: float(path.parts[-3]))
    return newest[-1].parent if newest else None


@contextmanager
def running_postgresql(binaries: Path) -> Iterator[PostgreSQL]:
    """Give a server that ends, with all its data, when the block does."""
    home = Path(tempfile.mkdtemp(prefix="comes-postgresql-"))  # that the user postgres may enter
    try:
        server = PostgreSQL(home, binaries)
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(home, ignore_errors=True)
