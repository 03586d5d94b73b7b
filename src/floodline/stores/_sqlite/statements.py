"""The statements on sessions and their leases."""

from __future__ import annotations

LEASE = """
INSERT INTO leases VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (name, id) DO UPDATE SET
    owner = excluded.owner, fence = excluded.fence, since = excluded.since, until = excluded.until
WHERE owner IN (excluded.owner, ?) OR NOT (since <= excluded.since AND excluded.since < until)
"""
GRANT = """
SELECT version, CASE version WHEN ? THEN NULL ELSE CAST(envelope AS BLOB) END
FROM sessions NOT INDEXED WHERE row = ? AND name = ? AND id = ?
"""
RENEW = """
UPDATE leases SET since = ?, until = ? WHERE name = ? AND id = ? AND fence = ? AND owner = ?
"""
UNLEASE = "DELETE FROM leases WHERE name = ? AND id = ? AND fence = ?"
LEASED = "SELECT 1 FROM leases WHERE name = ? AND id = ? AND fence = ?"
ROW = """
SELECT row, version, write_id, size, slot FROM sessions NOT INDEXED
WHERE row = ? AND name = ? AND id = ?
"""
MAKE = "INSERT INTO sessions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
WRITE = """
UPDATE sessions SET version = ?, write_id = ?, used_at = ?, size = ?, envelope = ? WHERE row = ?
"""
USE = """
UPDATE sessions NOT INDEXED SET used_at = ? WHERE row = ? AND name = ? AND id = ? AND slot = ?
"""
USE_IN_SLOT = "UPDATE sessions SET used_at = ?, slot = ? WHERE row = ?"
UNUSED = """
SELECT s.row, s.id, s.version, s.size
FROM sessions s LEFT JOIN leases l ON l.name = s.name AND l.id = s.id
WHERE s.name = ? AND s.slot <= ? AND s.used_at <= ?
    AND (l.until IS NULL OR l.until <= ? OR l.since > ?)
ORDER BY s.slot LIMIT ?
"""
# rows stamped while the date was wrong count as used now, or they would stay forever
FUTURE = """
UPDATE sessions SET used_at = ?, slot = ?
WHERE row IN (SELECT row FROM sessions WHERE name = ? AND slot > ? LIMIT ?)
"""
TOTAL = """
INSERT INTO totals VALUES (?, ?, ?)
ON CONFLICT (name) DO UPDATE SET count = count + excluded.count, bytes = bytes + excluded.bytes
"""
