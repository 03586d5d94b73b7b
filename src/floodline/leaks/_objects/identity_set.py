"""The set of objects a walk has met, at one bit per sixteen bytes of address space."""

from __future__ import annotations

from collections.abc import Iterable

_BITS = tuple(1 << bit for bit in range(8))


class Seen:
    """A set of addresses: a bitmap for each mebibyte that contains one of them.

    It takes less than a hundredth of the memory of the objects themselves.
    """

    __slots__ = ("_maps",)

    def __init__(self) -> None:
        self._maps: dict[int, bytearray] = {}

    def __contains__(self, address: object) -> bool:
        number: int = address  # type: ignore[assignment]  # only identities are asked for
        bits = self._maps.get(number >> 20)
        return bits is not None and bool(bits[(number >> 7) & 8191] & _BITS[(number >> 4) & 7])

    def mark(self, address: int) -> bool:
        """Mark an address; return True if it was new."""
        bits = self._maps.get(address >> 20)
        if bits is None:
            bits = self._maps[address >> 20] = bytearray(8192)
        at, bit = (address >> 7) & 8191, _BITS[(address >> 4) & 7]
        if bits[at] & bit:
            return False
        bits[at] |= bit
        return True

    add = mark

    def update(self, addresses: Iterable[int]) -> None:
        """Mark some addresses."""
        for address in addresses:
            self.mark(address)

    def discard(self, address: int) -> None:
        """Unmark an address."""
        bits = self._maps.get(address >> 20)
        if bits is not None:
            bits[(address >> 7) & 8191] &= ~_BITS[(address >> 4) & 7]

    @property
    def size(self) -> int:
        """The bytes that the maps take."""
        return 8192 * len(self._maps)
