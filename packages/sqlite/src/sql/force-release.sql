-- Ends the holds of a resource, or only one acquisition's. A stolen one has ended already.
-- ?1 resource, ?2 acquisition id or NULL
-- rows: as holders.sql
DELETE FROM holds WHERE resource = ?1 AND (?2 IS NULL OR acquisition_id = ?2) AND expires_at > 0
RETURNING acquisition_id, kind, weight, permits, label, CAST(token AS TEXT) AS token, granted_at, expires_at;
