"""Refuses a store on a server whose rows this version would not find."""

from __future__ import annotations

from floodline.errors import StoreError, StoreTooNew
from floodline.stores._server.addresses import mask


def check_layout(url: str, found: int, known: int, elsewhere: str) -> None:
    """Raise unless the store has the schema that this version reads and writes.

    `elsewhere` says what to choose for another store on the same server.
    """
    versions = f"(schema {found}, this one knows {known})"
    if found > known:
        raise StoreTooNew(
            f"{mask(url)!r} was written by a newer version of floodline {versions}; "
            "update floodline"
        )
    if found < known:
        raise StoreError(
            f"{mask(url)!r} was written by an older version of floodline {versions}, and was left "
            "as it is; copy it with `floodline store copy` of that version to a SQLite file and "
            f"from there to a new store, or choose another {elsewhere}"
        )
