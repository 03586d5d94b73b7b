"""Store files to damage, and what becomes of their sessions."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from floodline.errors import StoreCorrupt, StoreTooNew
from floodline.stores import Grant, SQLiteStore, seal, unseal

PAGE = 4096
NAME = "chat"


def put(store: SQLiteStore, id: str, content: bytes) -> int:
    grant = store.acquire(NAME, id, "me", lease=15.0)
    assert isinstance(grant, Grant)
    envelope = seal(content, version=grant.version + 1)
    terms = {"fence": grant.fence, "version": grant.version, "write_id": f"w{grant.fence}"}
    return store.save(NAME, id, envelope, release=True, **terms)


def take(store: SQLiteStore, id: str, *, hold: bool = False) -> bytes | None:
    """Return what is stored under an id, None if nothing is."""
    if hold:
        grant = store.acquire(NAME, id, "me", lease=15.0)
        assert isinstance(grant, Grant)
        return unseal(grant.envelope) if grant.version and grant.envelope is not None else None
    record = store.load(NAME, id)
    return None if record is None else unseal(record.envelope)


def write_store(path: Path, rows: int, rng: random.Random) -> dict[str, bytes]:
    """Make a store with sessions of many sizes, and free pages between them."""
    contents = {f"user-{n:04}": b"%04d" % n * rng.choice((5, 50, 400, 1500)) for n in range(rows)}
    with SQLiteStore(path) as store:
        for one, content in contents.items():
            put(store, one, content)
        for n in range(rows // 10):
            put(store, f"gone-{n}", bytes(6000))
            grant = store.acquire(NAME, f"gone-{n}", "me", lease=15.0)
            assert isinstance(grant, Grant)
            store.delete(NAME, f"gone-{n}", fence=grant.fence)
    return contents


def flips(size: int, per_page: int, rng: random.Random) -> Iterator[tuple[int, bytes]]:
    """Yield where to change a file and by which bits: every page, its header most of all."""
    for page in range(size // PAGE):
        for _ in range(per_page):
            reach = rng.choice((16, 120, PAGE))
            at = page * PAGE + rng.randrange(reach)
            length = min(rng.choice((1, 1, 1, 4, 64)), size - at)
            yield at, bytes(rng.randrange(1, 256) for _ in range(length))


def damage(path: Path, to: Path, at: int, bits: bytes) -> None:
    """Copy a closed file with some of its bits turned."""
    for suffix in ("-wal", "-shm"):
        Path(f"{to}{suffix}").unlink(missing_ok=True)
    shutil.copyfile(path, to)
    with to.open("r+b") as file:
        file.seek(at)
        old = file.read(len(bits))
        file.seek(at)
        file.write(bytes(a ^ b for a, b in zip(old, bits, strict=True)))


def look_at_all(path: Path, contents: dict[str, bytes], rng: random.Random) -> Counter[str]:
    """Ask a store for every session; whatever is neither right nor refused has a loud name."""
    told: Counter[str] = Counter()
    try:
        store = SQLiteStore(path)
    except (StoreCorrupt, StoreTooNew) as error:
        told[type(error).__name__] += 1
        return told
    with store:
        for one, content in contents.items():
            try:
                found = take(store, one, hold=rng.random() < 0.5)
            except StoreCorrupt as error:
                told[type(error).__name__] += 1
                continue
            told["MISSING" if found is None else "right" if found == content else "WRONG"] += 1
    return told
