-- One hold of a resource, whichever comes first: enough where it lives and is not a permit, since then all others are alike.
-- ?1 resource, ?2 now
-- row: as holds-summary.sql, but live (0: it expired or was stolen) instead of holders and used
SELECT acquisition_id, kind, weight, permits, CAST(token AS TEXT) AS token, expires_at, expires_at > ?2 AS live
FROM holds
WHERE resource = ?1
LIMIT 1;
