"""The functions that serve many callers by a few statements, where nothing is out of the ordinary.

To begin a statement costs the server more than what it does for one row. As soon as one caller of
a batch needs more than a lease that is free, or a row that is as it was, all are served one by one.
Rows are locked in the order of the arrays, which a join alone would not promise.

Fences are drawn before the leases are locked. If others drew any until then, the whole batch gets
new ones, which nobody else has and which are above all that these sessions ever had.
"""

from __future__ import annotations

BATCHES = """
CREATE FUNCTION "{s}".acquire_all(
    p_now float8, p_name bytea, p_ids bytea[], p_owners bytea[], p_leases float8[],
    p_knowns bigint[], p_deads bytea[], p_hears boolean[]
) RETURNS TABLE (
    o_fence bigint, o_version bigint, o_envelope bytea, o_holder bytea, o_seconds float8
) LANGUAGE plpgsql
    SET plan_cache_mode = force_generic_plan
    SET enable_hashjoin = off SET enable_mergejoin = off AS $$
DECLARE
    n bigint := cardinality(p_ids);
    t float8 := coalesce(p_now, "{s}".now_s());
    first bigint := "{s}".next_fences(n, 0);
    fences bigint[];
    latest bigint;
    ahead bigint;
BEGIN
    WITH given AS (
        INSERT INTO "{s}".leases AS l
        SELECT p_name, a.id, a.owner, first + a.n - 1, t, t + a.lease, a.hears
        FROM unnest(p_ids, p_owners, p_leases, p_hears) WITH ORDINALITY
            AS a(id, owner, lease, hears, n)
        ON CONFLICT (name, id) DO UPDATE SET owner = excluded.owner,
            fence = greatest(excluded.fence, l.fence + 1), hears = excluded.hears, beat = 0,
            since = excluded.since, until = excluded.until, wanted = false
        WHERE l.owner = excluded.owner
            OR NOT (l.beat > 0 OR l.since <= excluded.since + 60 AND excluded.since < l.until)
        RETURNING l.fence
    ) SELECT array_agg(fence), max(fence), sum(fence - first) INTO fences, latest, ahead
    FROM given;
    IF cardinality(fences) = n THEN
        IF ahead <> n * (n - 1) / 2 OR (SELECT last_value FROM "{s}".fences) >= first + n THEN
            first := "{s}".next_fences(n, latest);
            UPDATE "{s}".leases AS l SET fence = first + a.n - 1
            FROM unnest(p_ids) WITH ORDINALITY AS a(id, n) WHERE l.name = p_name AND l.id = a.id;
            SELECT array_agg(f) INTO fences FROM generate_series(first, first + n - 1) AS f;
        END IF;
        RETURN QUERY SELECT a.fence, coalesce(s.version, 0),
            CASE WHEN s.version = a.known THEN NULL ELSE s.envelope END, NULL::bytea, NULL::float8
        FROM unnest(p_ids, fences, p_knowns) WITH ORDINALITY AS a(id, fence, known, n)
        LEFT JOIN LATERAL (SELECT version, envelope FROM "{s}".sessions
            WHERE name = p_name AND id = a.id FOR KEY SHARE) AS s ON true;
        RETURN;
    END IF;
    FOR i IN 1 .. n LOOP
        RETURN QUERY SELECT a.* FROM "{s}".acquire(p_now, p_name, p_ids[i], p_owners[i],
            p_leases[i], p_knowns[i], p_deads[i], p_hears[i]) AS a;
    END LOOP;
END $$;
CREATE FUNCTION "{s}".save_all(
    p_now float8, p_stamp float8, p_date float8, p_lost bytea, p_stale text, p_name bytea,
    p_ids bytea[], p_envelopes bytea[], p_fences bigint[], p_versions bigint[], p_writes bytea[],
    p_releases boolean[]
) RETURNS TABLE (o_version bigint, o_ours boolean, o_stored bigint)
LANGUAGE plpgsql
    SET plan_cache_mode = force_generic_plan
    SET enable_hashjoin = off SET enable_mergejoin = off AS $$
DECLARE
    n bigint := cardinality(p_ids);
    base bigint := "{s}".look();
    stamp float8 := coalesce(p_stamp, p_now, "{s}".now_s());
    ours bigint;
    ended tid[];
    new bigint[];
    grown bigint;
BEGIN
    SELECT count(*), array_agg(l.place) FILTER (WHERE a.release) INTO ours, ended
    FROM unnest(p_ids, p_fences, p_releases) AS a(id, fence, release)
    CROSS JOIN LATERAL (SELECT ctid AS place, waited FROM "{s}".leases
        WHERE name = p_name AND id = a.id AND fence = a.fence FOR UPDATE) AS l
    WHERE NOT (l.waited AND a.release);
    IF ours = n AND 0 < ALL (p_versions) THEN
        WITH written AS (
            UPDATE "{s}".sessions AS s SET version = greatest(base, o.version) + 1,
                write_id = o.write, earlier_ids = (s.write_id || s.earlier_ids)[1:4],
                earlier = (s.version || s.earlier)[1:4], used_at = greatest(stamp, s.used_at),
                slot = floor(greatest(stamp, s.used_at) / 600), size = octet_length(o.envelope),
                envelope = o.envelope
            FROM (
                SELECT a.*, l.place, l.size
                FROM unnest(p_ids, p_envelopes, p_versions, p_writes) WITH ORDINALITY
                    AS a(id, envelope, version, write, n)
                CROSS JOIN LATERAL (SELECT ctid AS place, s.size FROM "{s}".sessions AS s
                    WHERE s.name = p_name AND s.id = a.id AND s.version = a.version
                        AND s.write_id <> a.write AND a.write <> ALL (s.earlier_ids)
                    FOR NO KEY UPDATE) AS l
            ) AS o WHERE s.ctid = o.place RETURNING o.n, s.version, s.size - o.size AS more
        ) SELECT array_agg(w.version ORDER BY w.n), sum(w.more) INTO new, grown FROM written AS w;
        IF grown <> 0 THEN
            PERFORM "{s}".add(p_name, 0, grown, 0);
        END IF;
        IF cardinality(new) = n THEN
            DELETE FROM "{s}".leases WHERE ctid = ANY (ended);
            RETURN QUERY SELECT v, true, NULL::bigint FROM unnest(new) AS v;
            RETURN;
        END IF;
    END IF;
    FOR i IN 1 .. n LOOP  -- what was written above is known by its write id
        RETURN QUERY SELECT a.o_version, a.o_ours, a.o_stored FROM "{s}".save(base, p_now, p_stamp,
            p_date, p_lost, p_stale, p_name, p_ids[i], p_envelopes[i], p_fences[i], p_versions[i],
            p_writes[i], p_releases[i], NULL, NULL, NULL) AS a;
    END LOOP;
END $$;
"""
