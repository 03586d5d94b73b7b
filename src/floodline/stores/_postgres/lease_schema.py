"""The functions of leases: giving, keeping and ending them, and telling who waits.

A lease whose `beat` is not 0 lasts as long as the heartbeat of its owner with that number.
`waited` says that somebody waits for it, `hears` that its owner hears who wants it; both are told
on a channel that is named like the schema.
"""

from __future__ import annotations

LEASES = """
CREATE FUNCTION "{s}".lasts(p_lease "{s}".leases, p_now float8) RETURNS float8 LANGUAGE sql AS $$
    SELECT greatest(CASE WHEN p_lease.since <= p_now + 60 THEN p_lease.until END, (
        SELECT until FROM "{s}".beats WHERE owner = p_lease.owner
        AND number = p_lease.beat AND since <= p_now + 60))
$$;
CREATE FUNCTION "{s}".say_free(p_name bytea, p_id bytea) RETURNS void LANGUAGE sql AS $$
    SELECT pg_notify('{s}', 'f' || encode(sha256(p_name || '\\x00'::bytea || p_id), 'hex'))
$$;
CREATE FUNCTION "{s}".acquire(
    p_now float8, p_name bytea, p_id bytea, p_owner bytea, p_lease float8, p_known bigint,
    p_dead bytea, p_hears boolean, OUT o_fence bigint, OUT o_version bigint, OUT o_envelope bytea,
    OUT o_holder bytea, OUT o_seconds float8
) LANGUAGE plpgsql AS $$
DECLARE
    t float8;
    old "{s}".leases;
    over bigint;
    drawn bigint;
BEGIN
    LOOP
        t := coalesce(p_now, "{s}".now_s());
        drawn := "{s}".next_fences(1, 0);
        INSERT INTO "{s}".leases AS l
        VALUES (p_name, p_id, p_owner, drawn, t, t + p_lease, p_hears)
        ON CONFLICT (name, id) DO UPDATE SET owner = excluded.owner,
            fence = greatest(excluded.fence, l.fence + 1), hears = excluded.hears, beat = 0,
            since = excluded.since, until = excluded.until, wanted = false
        WHERE l.owner = excluded.owner OR l.owner = p_dead OR l.fence = over
            OR NOT (l.beat > 0 OR l.since <= excluded.since + 60 AND excluded.since < l.until)
        RETURNING l.fence INTO o_fence;
        EXIT WHEN FOUND;
        SELECT * INTO old FROM "{s}".leases WHERE name = p_name AND id = p_id;
        CONTINUE WHEN NOT FOUND;
        o_seconds := "{s}".lasts(old, t) - t;
        IF o_seconds > 0 THEN
            o_fence := NULL;
            o_holder := old.owner;
            IF NOT (old.wanted AND old.waited) THEN
                UPDATE "{s}".leases SET wanted = true, waited = true
                WHERE name = p_name AND id = p_id;
            END IF;
            IF old.hears AND NOT old.wanted THEN
                PERFORM pg_notify('{s}', 'w' || encode(sha256(old.owner), 'hex'));
            END IF;
            RETURN;
        END IF;
        over := old.fence;
    END LOOP;
    o_seconds := NULL;
    IF o_fence <> drawn OR drawn <> (SELECT last_value FROM "{s}".fences) THEN
        UPDATE "{s}".leases SET fence = "{s}".next_fences(1, o_fence)
        WHERE name = p_name AND id = p_id RETURNING fence INTO o_fence;
    END IF;
    -- waits for whoever is deleting the row: a lease must not be given for what is about to go
    SELECT version, CASE WHEN version = p_known THEN NULL ELSE envelope END
    INTO o_version, o_envelope FROM "{s}".sessions WHERE name = p_name AND id = p_id FOR KEY SHARE;
    o_version := coalesce(o_version, 0);
END $$;
CREATE FUNCTION "{s}".unlease(p_name bytea, p_id bytea, p_fence bigint)
RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    awaited boolean;
BEGIN
    DELETE FROM "{s}".leases WHERE name = p_name AND id = p_id AND fence = p_fence
    RETURNING waited INTO awaited;
    IF awaited THEN
        PERFORM "{s}".say_free(p_name, p_id);
    END IF;
    RETURN awaited IS NOT NULL;
END $$;
CREATE FUNCTION "{s}".renew(
    p_now float8, p_name bytea, p_owner bytea, p_lease float8, p_number bigint, p_ids bytea[],
    p_fences bigint[], p_gone bytea[], p_gone_fences bigint[], OUT o_stopped boolean,
    OUT o_lost bytea[]
) LANGUAGE plpgsql AS $$
DECLARE
    t float8 := coalesce(p_now, "{s}".now_s());
    i integer;
BEGIN
    SELECT NOT (since <= t + 60 AND t < until) INTO o_stopped FROM "{s}".beats
    WHERE owner = p_owner;
    o_stopped := coalesce(o_stopped, true);
    INSERT INTO "{s}".beats AS b VALUES (p_owner, p_number, t, t + p_lease)
    ON CONFLICT (owner) DO UPDATE SET number = p_number, since = t, until = t + p_lease;
    o_lost := '{{}}';
    FOR i IN 1 .. coalesce(array_length(p_ids, 1), 0) LOOP
        UPDATE "{s}".leases SET since = t, until = t + p_lease, beat = p_number
        WHERE name = p_name AND id = p_ids[i] AND fence = p_fences[i] AND owner = p_owner;
        IF NOT FOUND THEN
            o_lost := o_lost || p_ids[i];
        END IF;
    END LOOP;
    FOR i IN 1 .. coalesce(array_length(p_gone, 1), 0) LOOP
        PERFORM "{s}".unlease(p_name, p_gone[i], p_gone_fences[i]);
    END LOOP;
END $$;
CREATE FUNCTION "{s}".release(
    p_now float8, p_stamp float8, p_name bytea, p_id bytea, p_fence bigint
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    stamp float8 := coalesce(p_stamp, p_now, "{s}".now_s());
BEGIN
    IF "{s}".unlease(p_name, p_id, p_fence) THEN
        UPDATE "{s}".sessions SET used_at = greatest(used_at, stamp),
            slot = floor(greatest(used_at, stamp) / 600)
        WHERE name = p_name AND id = p_id;
    END IF;
END $$;
CREATE FUNCTION "{s}".forget_stale(p_now float8, p_seconds float8) RETURNS void LANGUAGE plpgsql
AS $$
DECLARE
    t float8 := coalesce(p_now, "{s}".now_s());
BEGIN
    DELETE FROM "{s}".leases WHERE (name, id) IN (
        SELECT name, id FROM "{s}".leases AS l WHERE until < t - p_seconds
        AND coalesce("{s}".lasts(l, t), 0) < t FOR UPDATE SKIP LOCKED);
    DELETE FROM "{s}".beats WHERE owner IN (
        SELECT owner FROM "{s}".beats WHERE until < t - p_seconds FOR UPDATE SKIP LOCKED);
END $$;
"""
