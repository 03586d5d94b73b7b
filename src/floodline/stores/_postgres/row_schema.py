"""The tables and functions of row logs.

A log has a head with its totals and last number; its rows refer to the head by number. An append
works through its rows in a block that is rolled back as a whole if one of them is refused.
"""

from __future__ import annotations

LOGS = """
CREATE TABLE "{s}".logs (
    head bigserial PRIMARY KEY, name bytea NOT NULL, id bytea NOT NULL, log bytea NOT NULL,
    last bigint NOT NULL, rows bigint NOT NULL, bytes bigint NOT NULL, UNIQUE (name, id, log)
) WITH (fillfactor = 80);
CREATE TABLE "{s}".log_rows (
    head bigint NOT NULL, key bytea NOT NULL, number bigint NOT NULL, at float8 NOT NULL,
    data bytea NOT NULL, PRIMARY KEY (head, key), UNIQUE (head, number, key)
);
CREATE TYPE "{s}".appends AS (
    logs bytea[], max_rows bigint[], max_bytes bigint[], full_drops boolean[], taken text[],
    counts bigint[], keys bytea[], numbers bigint[], data bytea[]
);
CREATE TYPE "{s}".refusal AS (
    why text, log bytea, key bytea, rows bigint, bytes bigint, written bigint
);
CREATE FUNCTION "{s}".append(p_name bytea, p_id bytea, p_at float8, p "{s}".appends)
RETURNS "{s}".refusal LANGUAGE plpgsql AS $$
DECLARE
    refused "{s}".refusal := ('', NULL, NULL, 0, 0, 0);
    head record;
    old record;
    written bigint := 0;
    changed boolean;
    n bigint := 0;
    number bigint;
    i integer;
    j integer;
BEGIN
    FOR i IN 1 .. coalesce(array_length(p.logs, 1), 0) LOOP
        CONTINUE WHEN p.counts[i] = 0;
        INSERT INTO "{s}".logs AS l (name, id, log, last, rows, bytes)
        VALUES (p_name, p_id, p.logs[i], -1, 0, 0)
        ON CONFLICT (name, id, log) DO UPDATE SET last = l.last
        RETURNING l.head, l.last, l.rows, l.bytes, l.rows AS rows_before, l.bytes AS bytes_before
        INTO head;
        changed := false;
        FOR j IN 1 .. p.counts[i] LOOP
            n := n + 1;
            SELECT r.data INTO old FROM "{s}".log_rows AS r
            WHERE r.head = head.head AND r.key = p.keys[n];
            IF FOUND THEN
                CONTINUE WHEN old.data = p.data[n] OR p.taken[i] = 'keep';
                IF p.taken[i] = 'refuse' THEN
                    refused := ('taken', p.logs[i], p.keys[n], 0, 0, 0);
                    RAISE EXCEPTION USING ERRCODE = 'FLROW';
                END IF;
                UPDATE "{s}".log_rows AS r SET data = p.data[n], at = p_at
                WHERE r.head = head.head AND r.key = p.keys[n];
                head.bytes := head.bytes - octet_length(old.data);
            ELSE
                number := coalesce(p.numbers[n], head.last + 1);
                head.last := greatest(head.last, number);
                head.rows := head.rows + 1;
                INSERT INTO "{s}".log_rows VALUES (head.head, p.keys[n], number, p_at, p.data[n]);
            END IF;
            head.bytes := head.bytes + octet_length(p.data[n]);
            written := written + 1;
            changed := true;
        END LOOP;
        CONTINUE WHEN NOT changed;
        WHILE head.rows > p.max_rows[i] OR head.bytes > p.max_bytes[i] LOOP
            IF NOT p.full_drops[i] THEN
                refused := ('full', p.logs[i], NULL, head.rows, head.bytes, 0);
                RAISE EXCEPTION USING ERRCODE = 'FLROW';
            END IF;
            DELETE FROM "{s}".log_rows AS r WHERE r.head = head.head AND r.key = (
                SELECT o.key FROM "{s}".log_rows AS o WHERE o.head = head.head
                ORDER BY o.number, o.key LIMIT 1)
            RETURNING r.data INTO old;
            head.rows := head.rows - 1;
            head.bytes := head.bytes - octet_length(old.data);
        END LOOP;
        UPDATE "{s}".logs AS l SET last = head.last, rows = head.rows, bytes = head.bytes
        WHERE l.head = head.head;
        PERFORM "{s}".add(p_name, 0, 0, 0, head.rows - head.rows_before,
            head.bytes - head.bytes_before);
    END LOOP;
    refused.written := written;
    RETURN refused;
EXCEPTION WHEN SQLSTATE 'FLROW' THEN
    RETURN refused;
END $$;
CREATE FUNCTION "{s}".append_rows(
    p_stamp float8, p_date float8, p_name bytea, p_id bytea, p_fence bigint, p_create boolean,
    p_why bytea, p_packed bytea, p_appends "{s}".appends
) RETURNS "{s}".refusal LANGUAGE plpgsql AS $$
DECLARE
    base bigint := "{s}".look();
    stamp float8 := coalesce(p_stamp, "{s}".now_s());
    refused "{s}".refusal;
    made boolean := false;
BEGIN
    IF p_fence IS NOT NULL THEN
        PERFORM 1 FROM "{s}".leases WHERE name = p_name AND id = p_id AND fence = p_fence
        FOR UPDATE;
        IF NOT FOUND THEN
            PERFORM "{s}".keep('conflicts', p_name, p_id, p_date, p_why, NULL, p_packed);
            refused.why := 'lost';
            RETURN refused;
        END IF;
    END IF;
    LOOP
        UPDATE "{s}".sessions SET used_at = greatest(used_at, stamp),
            slot = floor(greatest(used_at, stamp) / 600)
        WHERE name = p_name AND id = p_id;
        EXIT WHEN FOUND;
        IF NOT p_create THEN
            refused.why := 'missing';
            RETURN refused;
        END IF;
        INSERT INTO "{s}".sessions SELECT p_name, p_id, greatest(base, coalesce(max(floor), 0)) + 1,
            '', '{{}}', '{{}}', stamp, floor(stamp / 600), 0, '' FROM "{s}".totals
        ON CONFLICT (name, id) DO NOTHING;
        made := FOUND;
        EXIT WHEN made;
    END LOOP;
    refused := "{s}".append(p_name, p_id, coalesce(p_date, "{s}".now_s()), p_appends);
    IF made AND refused.why <> '' THEN
        DELETE FROM "{s}".sessions WHERE name = p_name AND id = p_id;
    ELSIF made THEN
        PERFORM "{s}".add(p_name, 1, 0, 0);
    END IF;
    RETURN refused;
END $$;
CREATE FUNCTION "{s}".empty(p_name bytea, p_id bytea, p_log bytea)
RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    gone bigint := 0;
    one record;
BEGIN
    FOR one IN SELECT head, rows, bytes FROM "{s}".logs WHERE name = p_name AND id = p_id
        AND (p_log IS NULL OR log = p_log) AND rows > 0 ORDER BY log FOR UPDATE
    LOOP
        DELETE FROM "{s}".log_rows WHERE head = one.head;
        UPDATE "{s}".logs SET rows = 0, bytes = 0 WHERE head = one.head;
        PERFORM "{s}".add(p_name, 0, 0, 0, -one.rows, -one.bytes);
        gone := gone + one.rows;
    END LOOP;
    RETURN gone;
END $$;
CREATE FUNCTION "{s}".delete_rows(
    p_name bytea, p_id bytea, p_log bytea, p_keys bytea[], p_fence bigint
) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    gone record;
    of bigint;
BEGIN
    IF p_fence IS NOT NULL THEN
        PERFORM 1 FROM "{s}".leases WHERE name = p_name AND id = p_id AND fence = p_fence
        FOR UPDATE;
        IF NOT FOUND THEN
            RETURN NULL;
        END IF;
    END IF;
    PERFORM 1 FROM "{s}".sessions WHERE name = p_name AND id = p_id FOR NO KEY UPDATE;
    IF p_keys IS NULL THEN
        RETURN "{s}".empty(p_name, p_id, p_log);
    END IF;
    SELECT head INTO of FROM "{s}".logs WHERE name = p_name AND id = p_id AND log = p_log
    FOR UPDATE;
    WITH deleted AS (
        DELETE FROM "{s}".log_rows WHERE head = of AND key = ANY (p_keys) RETURNING data
    ) SELECT count(*) AS rows, coalesce(sum(octet_length(data)), 0)::bigint AS bytes
    INTO gone FROM deleted;
    IF gone.rows > 0 THEN
        UPDATE "{s}".logs SET rows = rows - gone.rows, bytes = bytes - gone.bytes WHERE head = of;
        PERFORM "{s}".add(p_name, 0, 0, 0, -gone.rows, -gone.bytes);
    END IF;
    RETURN gone.rows;
END $$;
"""
