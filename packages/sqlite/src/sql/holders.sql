-- The holders of a resource, for operators.
-- ?1 resource, ?2 now
-- rows: acquisition_id, kind, weight, permits, label, token (text), granted_at, expires_at
SELECT acquisition_id, kind, weight, permits, label, CAST(token AS TEXT) AS token, granted_at, expires_at
FROM holds
WHERE resource = ?1 AND expires_at > ?2
ORDER BY granted_at;
