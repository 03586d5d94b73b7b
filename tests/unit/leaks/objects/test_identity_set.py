from __future__ import annotations

from floodline.leaks._objects.identity_set import Seen


def test_what_was_seen_is_exact():
    seen = Seen()
    addresses = [k * 16 + (k % 3 << 30) for k in range(1, 5000, 7)]
    assert all(seen.mark(address) for address in addresses)
    assert not any(seen.mark(address) for address in addresses)
    assert all(address in seen and address + 16 not in seen for address in addresses)
    seen.discard(addresses[3])
    seen.discard(1 << 50)
    assert addresses[3] not in seen
    assert seen.size == 8192 * 3
