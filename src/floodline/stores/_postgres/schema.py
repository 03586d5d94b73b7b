"""The tables and functions of a store in PostgreSQL.

Names and ids are `bytea`: `text` has no NUL and orders by a collation. A refusal is returned, not
raised, or the copy of the refused bytes would be rolled back with it. Every function locks the
lease first and the row second, and a batch is sorted by key, so that two of them never wait for
each other. What all rows add up to is kept in a few hundred `totals`, one for each connection, for
the same reason; they also hold the floor of the versions.

The index by slot has `name || ''` and not the name: as long as a table has not been analyzed the
server would otherwise take it to find a session, and read all of the name.

A fence is drawn from a sequence before its lease is locked, and drawn again if others drew any
until then: one of those may have been given for the same session, whose fences must rise. It is
`max(next of the sequence, time in microseconds)`, and the sequence follows. A standby that is
promoted may not know the last ones, and neither may a server that crashed before it wrote them to
its disk, for which a lease does not wait; but its clock is beyond the time at which they were
given. Versions begin above the time for the same reason on a server that was started at another
time: what was lost may have had any of the next numbers.
"""

from __future__ import annotations

from floodline.stores._postgres.batch_schema import BATCHES
from floodline.stores._postgres.lease_schema import LEASES
from floodline.stores._postgres.row_schema import LOGS
from floodline.stores._refusals import KEPT_BYTES, KEPT_ROWS

SCHEMA = 3

_TABLES = """
CREATE SCHEMA IF NOT EXISTS "{s}";
CREATE SEQUENCE "{s}".fences;
CREATE TABLE "{s}".meta (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    version integer NOT NULL, started timestamptz NOT NULL, base bigint NOT NULL, noted text
);
CREATE TABLE "{s}".sessions (
    name bytea NOT NULL, id bytea NOT NULL, version bigint NOT NULL, write_id bytea NOT NULL,
    earlier_ids bytea[] NOT NULL, earlier bigint[] NOT NULL, used_at float8 NOT NULL,
    slot bigint NOT NULL, size bigint NOT NULL, envelope bytea NOT NULL, PRIMARY KEY (name, id)
) WITH (fillfactor = 80);
CREATE INDEX sessions_by_slot ON "{s}".sessions ((name || ''), slot);
CREATE TABLE "{s}".leases (
    name bytea NOT NULL, id bytea NOT NULL, owner bytea NOT NULL, fence bigint NOT NULL,
    since float8 NOT NULL, until float8 NOT NULL, hears boolean NOT NULL,
    beat bigint NOT NULL DEFAULT 0, wanted boolean NOT NULL DEFAULT false,
    waited boolean NOT NULL DEFAULT false, PRIMARY KEY (name, id)
) WITH (fillfactor = 80);
CREATE TABLE "{s}".beats (
    owner bytea PRIMARY KEY, number bigint NOT NULL, since float8 NOT NULL, until float8 NOT NULL
) WITH (fillfactor = 50);
CREATE INDEX leases_wanted ON "{s}".leases (owner) WHERE wanted;
CREATE TABLE "{s}".totals (
    name bytea NOT NULL, slot integer NOT NULL, count bigint NOT NULL, bytes bigint NOT NULL,
    floor bigint NOT NULL, log_rows bigint NOT NULL, log_bytes bigint NOT NULL,
    PRIMARY KEY (name, slot)
) WITH (fillfactor = 50);
CREATE TABLE "{s}".kept (
    n bigserial, kind text NOT NULL, name bytea NOT NULL, id bytea NOT NULL, at float8 NOT NULL,
    why bytea NOT NULL, digest bytea, size bigint NOT NULL, envelope bytea NOT NULL,
    PRIMARY KEY (kind, n), UNIQUE (kind, name, id, digest)
);
CREATE TABLE "{s}".dropped (kind text PRIMARY KEY, count bigint NOT NULL);
"""

_TIMES = """
CREATE FUNCTION "{s}".now_s() RETURNS float8 LANGUAGE sql VOLATILE AS
    'SELECT extract(epoch FROM clock_timestamp())::float8';
CREATE FUNCTION "{s}".next_fences(p_count bigint, p_above bigint) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    lock bigint := hashtext('"{s}".fences');
    fence bigint;
    micros bigint;
BEGIN
    -- one at a time, or two that find the sequence behind the clock both set it to the same number
    PERFORM pg_advisory_lock(lock);
    micros := (extract(epoch FROM clock_timestamp()) * 1000000)::bigint;
    fence := greatest(nextval('"{s}".fences'), micros, p_above + 1);
    PERFORM setval('"{s}".fences', fence + p_count - 1);
    PERFORM pg_advisory_unlock(lock);
    RETURN fence;
EXCEPTION WHEN OTHERS THEN
    PERFORM pg_advisory_unlock(lock);
    RAISE;
END $$;
CREATE FUNCTION "{s}".look() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    present record;
    micros bigint;
BEGIN
    SELECT started, base INTO present FROM "{s}".meta;
    IF present.started = pg_postmaster_start_time() THEN
        RETURN present.base;
    END IF;
    micros := "{s}".now_s() * 1000000;
    UPDATE "{s}".meta SET started = pg_postmaster_start_time(), base = greatest(base, micros)
    WHERE started <> pg_postmaster_start_time();
    SELECT base INTO micros FROM "{s}".meta;
    RETURN micros;
END $$;
CREATE FUNCTION "{s}".add(
    p_name bytea, p_count bigint, p_bytes bigint, p_floor bigint, p_log_rows bigint DEFAULT 0,
    p_log_bytes bigint DEFAULT 0
) RETURNS void LANGUAGE sql AS $$
    INSERT INTO "{s}".totals AS t
    VALUES (p_name, pg_backend_pid() % 1024, p_count, p_bytes, p_floor, p_log_rows, p_log_bytes)
    ON CONFLICT (name, slot) DO UPDATE SET count = t.count + excluded.count,
        bytes = t.bytes + excluded.bytes, floor = greatest(t.floor, excluded.floor),
        log_rows = t.log_rows + excluded.log_rows, log_bytes = t.log_bytes + excluded.log_bytes
$$;
"""

_SAVE = """
CREATE FUNCTION "{s}".keep(
    p_kind text, p_name bytea, p_id bytea, p_date float8, p_why bytea, p_digest bytea,
    p_envelope bytea
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    oldest record;
BEGIN
    INSERT INTO "{s}".kept (kind, name, id, at, why, digest, size, envelope)
    VALUES (p_kind, p_name, p_id, coalesce(p_date, "{s}".now_s()), p_why, p_digest,
        octet_length(p_envelope), p_envelope)
    ON CONFLICT DO NOTHING;
    FOR oldest IN
        SELECT n FROM (
            SELECT n, row_number() OVER newest AS place, sum(size) OVER newest AS bytes
            FROM "{s}".kept WHERE kind = p_kind WINDOW newest AS (ORDER BY n DESC)
        ) AS k WHERE place > {rows} OR bytes > {bytes}
    LOOP
        DELETE FROM "{s}".kept WHERE kind = p_kind AND n = oldest.n;
        IF FOUND THEN
            INSERT INTO "{s}".dropped AS d VALUES (p_kind, 1)
            ON CONFLICT (kind) DO UPDATE SET count = d.count + 1;
        END IF;
    END LOOP;
END $$;
CREATE FUNCTION "{s}".save(
    p_base bigint, p_now float8, p_stamp float8, p_date float8, p_lost bytea, p_stale text,
    p_name bytea, p_id bytea, p_envelope bytea, p_fence bigint, p_version bigint, p_write bytea,
    p_release boolean, p_rows_why bytea, p_packed bytea, p_appends "{s}".appends,
    OUT o_version bigint, OUT o_ours boolean, OUT o_stored bigint, OUT o_refused "{s}".refusal
) LANGUAGE plpgsql AS $$
DECLARE
    stamp float8 := coalesce(p_stamp, p_now, "{s}".now_s());
    size bigint := octet_length(p_envelope);
    awaited boolean;
    old record;
    place integer;
    good boolean;
    why bytea := p_lost;
    grown bigint;
BEGIN
    IF p_release AND p_packed IS NULL THEN
        DELETE FROM "{s}".leases WHERE name = p_name AND id = p_id AND fence = p_fence
        RETURNING waited INTO awaited;
    ELSE
        PERFORM 1 FROM "{s}".leases WHERE name = p_name AND id = p_id AND fence = p_fence
        FOR UPDATE;
    END IF;
    o_ours := FOUND;
    IF awaited THEN
        PERFORM "{s}".say_free(p_name, p_id);
    END IF;
    IF o_ours AND p_version > 0 AND p_packed IS NULL THEN  -- nearly every one; the rest is slower
        UPDATE "{s}".sessions AS s SET version = greatest(p_base, p_version) + 1,
            write_id = p_write, earlier_ids = (s.write_id || s.earlier_ids)[1:4],
            earlier = (p_version || s.earlier)[1:4], used_at = greatest(stamp, s.used_at),
            slot = floor(greatest(stamp, s.used_at) / 600), size = octet_length(p_envelope),
            envelope = p_envelope
        FROM "{s}".sessions AS o
        WHERE s.name = p_name AND s.id = p_id AND s.version = p_version AND s.write_id <> p_write
            AND p_write <> ALL (s.earlier_ids) AND o.name = p_name AND o.id = p_id
        RETURNING s.version, s.size - o.size INTO o_version, grown;
        IF FOUND THEN
            IF grown <> 0 THEN
                PERFORM "{s}".add(p_name, 0, grown, 0);
            END IF;
            RETURN;
        END IF;
    END IF;
    SELECT s.version, s.write_id, s.earlier_ids, s.earlier, s.used_at, s.size INTO old
    FROM "{s}".sessions AS s WHERE s.name = p_name AND s.id = p_id FOR NO KEY UPDATE;
    o_stored := coalesce(old.version, 0);
    place := array_position(old.earlier_ids, p_write);
    o_version := CASE WHEN old.write_id = p_write THEN old.version ELSE old.earlier[place] END;
    good := o_ours AND o_version IS NULL AND o_stored = p_version;
    IF good AND p_packed IS NOT NULL THEN
        o_refused := "{s}".append(p_name, p_id, coalesce(p_date, "{s}".now_s()), p_appends);
        IF (o_refused).why <> '' THEN
            RETURN;
        END IF;
    END IF;
    IF p_release AND p_packed IS NOT NULL THEN
        PERFORM "{s}".unlease(p_name, p_id, p_fence);
    END IF;
    IF o_version IS NOT NULL THEN
        RETURN;
    END IF;
    IF NOT good THEN
        IF o_ours THEN
            why := convert_to(
                format(p_stale, p_version, coalesce(old.version::text, 'none')), 'UTF8');
        END IF;
        IF p_packed IS NOT NULL THEN
            PERFORM "{s}".keep(
                'conflicts', p_name, p_id, p_date, p_rows_why || why, NULL, p_packed);
        END IF;
        PERFORM "{s}".keep('conflicts', p_name, p_id, p_date, why, NULL, p_envelope);
        RETURN;
    END IF;
    IF o_stored = 0 THEN
        SELECT greatest(p_base, coalesce(max(floor), 0)) + 1 INTO o_version FROM "{s}".totals;
        INSERT INTO "{s}".sessions VALUES (p_name, p_id, o_version, p_write, '{{}}', '{{}}', stamp,
            floor(stamp / 600), size, p_envelope);
        PERFORM "{s}".add(p_name, 1, size, 0);
        RETURN;
    END IF;
    o_version := greatest(p_base, o_stored) + 1;
    stamp := greatest(stamp, old.used_at);
    UPDATE "{s}".sessions AS s SET version = o_version, write_id = p_write,
        earlier_ids = (old.write_id || old.earlier_ids)[1:4],
        earlier = (old.version || old.earlier)[1:4], used_at = stamp, slot = floor(stamp / 600),
        size = octet_length(p_envelope), envelope = p_envelope
    WHERE s.name = p_name AND s.id = p_id;
    IF size <> old.size THEN
        PERFORM "{s}".add(p_name, 0, size - old.size, 0);
    END IF;
END $$;
"""

_DELETE = """
CREATE FUNCTION "{s}".forget(p_name bytea, p_id bytea) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    old record;
BEGIN
    DELETE FROM "{s}".sessions WHERE name = p_name AND id = p_id RETURNING version, size INTO old;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    PERFORM "{s}".add(p_name, -1, -old.size, old.version);
    PERFORM "{s}".empty(p_name, p_id, NULL);
    DELETE FROM "{s}".logs WHERE name = p_name AND id = p_id;
    RETURN true;
END $$;
CREATE FUNCTION "{s}".delete(p_name bytea, p_id bytea, p_fence bigint)
RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    IF NOT "{s}".unlease(p_name, p_id, p_fence) THEN
        RETURN NULL;
    END IF;
    RETURN "{s}".forget(p_name, p_id);
END $$;
CREATE FUNCTION "{s}".purge(
    p_now float8, p_stamp float8, p_judged float8, p_name bytea, p_unused float8, p_limit bigint,
    p_noted text
) RETURNS SETOF bytea LANGUAGE plpgsql AS $$
DECLARE
    t float8 := coalesce(p_now, "{s}".now_s());
    taken_ids bytea[];
    one bytea;
BEGIN
    UPDATE "{s}".meta SET noted = p_noted WHERE p_noted IS NOT NULL;
    -- rows stamped while the date was wrong count as used now, or they would stay forever
    UPDATE "{s}".sessions SET used_at = p_stamp, slot = floor(p_stamp / 600)
    WHERE (name, id) IN (SELECT name, id FROM "{s}".sessions
        WHERE name || '' = p_name AND slot > floor(p_stamp / 600) + 1 LIMIT p_limit
        FOR UPDATE SKIP LOCKED);
    -- the rows first, and then their leases as they are by now: see `acquire`
    SELECT array_agg(id ORDER BY slot, used_at) INTO taken_ids FROM (
        SELECT s.id, s.slot, s.used_at FROM "{s}".sessions AS s
        WHERE s.name || '' = p_name AND s.slot <= floor((p_judged - p_unused) / 600)
            AND s.used_at <= p_judged - p_unused AND NOT EXISTS (
                SELECT 1 FROM "{s}".leases AS l WHERE l.name = s.name AND l.id = s.id
                AND "{s}".lasts(l, t) > t - p_unused)
        ORDER BY s.slot, s.used_at LIMIT p_limit FOR UPDATE SKIP LOCKED
    ) AS taken;
    FOREACH one IN ARRAY coalesce(taken_ids, '{{}}') LOOP
        -- a lease that somebody is just taking is not waited for: he waits for us
        CONTINUE WHEN EXISTS (SELECT 1 FROM "{s}".leases AS l WHERE l.name = p_name AND l.id = one
            AND "{s}".lasts(l, t) > t - p_unused);
        DELETE FROM "{s}".leases WHERE (name, id) IN (SELECT name, id FROM "{s}".leases
            WHERE name = p_name AND id = one FOR UPDATE SKIP LOCKED);
        PERFORM "{s}".forget(p_name, one);
        RETURN NEXT one;
    END LOOP;
END $$;
INSERT INTO "{s}".meta (version, started, base) VALUES ({version}, pg_postmaster_start_time(), 0);
"""


def ddl(schema: str) -> str:
    """Return everything that makes a store in an empty schema."""
    text = _TABLES + _TIMES + LEASES + LOGS + _SAVE + BATCHES + _DELETE
    return text.format(s=schema, rows=KEPT_ROWS, bytes=KEPT_BYTES, version=SCHEMA)
