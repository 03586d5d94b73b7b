"""A process that reads files for a scan: paths come in, packed facts go out.

Messages are lengths and `marshal` data, so that a worker may run in another version of Python. It
ends when its input does, which also happens when the scan is killed.
"""

from __future__ import annotations

import gc
import marshal
import os
import signal
import struct
import sys
import warnings
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from floodline.scan._sources.cache import key_of
from floodline.scan._sources.content import UNREADABLE, content_of, facts_of, why_unreadable

LENGTH = struct.Struct(">Q")
MANY_BYTES = 1 << 32  # of a message
VERSION = 4  # of the format of marshal: every Python that can run this reads it


class Answer(NamedTuple):
    """What a file says, or why it cannot be read; only values that `marshal` can write."""

    key: bytes = b""  # of the content, if it is to be cached
    facts: bytes | None = None
    ground: str = ""  # the name of the reason
    values: tuple[str, ...] = ()
    exhausted: bool = False  # memory ran out


def send(stream: BinaryIO, message: Any) -> None:
    """Write a message."""
    data = marshal.dumps(message, VERSION)
    stream.write(LENGTH.pack(len(data)) + data)
    stream.flush()


def receive(stream: BinaryIO) -> Any:
    """Read a message; raises `EOFError` at the end of the stream."""
    head = stream.read(LENGTH.size)
    if len(head) < LENGTH.size:
        raise EOFError
    (length,) = LENGTH.unpack(head)
    if length > MANY_BYTES:
        raise ValueError(f"a message of {length} bytes is not from a worker")
    data = stream.read(length)
    if len(data) < length:
        raise EOFError
    return marshal.loads(data)


def answer(path: Path, salt: bytes | None) -> Answer:
    """Read one file."""
    from floodline.scan._sources.encoding import pack_facts

    key = b""
    try:
        data = content_of(path)
        key = key_of(salt, data) if salt else b""
        return Answer(key, pack_facts(*facts_of(data, str(path), "")))
    except UNREADABLE as error:
        reason = why_unreadable(error)
        told = tuple(map(str, reason.values))
        return Answer(key, None, reason.ground.name, told, isinstance(error, MemoryError))


def serve(requests: BinaryIO, answers: BinaryIO) -> None:
    """Answer requests until there are no more; the first message says which Python this is."""
    send(answers, tuple(sys.version_info[:2]))
    while True:
        try:
            salt, paths = receive(requests)
        except EOFError:
            return
        send(answers, [tuple(answer(Path(os.fsdecode(path)), salt)) for path in paths])


def main() -> None:
    """Run as a worker."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the scan, which ends its workers
    warnings.simplefilter("ignore")  # warnings about the code that is read are not ours
    gc.disable()  # trees have no cycles, and the collector doubles the time
    try:
        serve(sys.stdin.buffer, sys.stdout.buffer)
    except BrokenPipeError:
        os._exit(0)  # the scan is gone; an ordinary exit would complain about its closed pipe
