-- Who holds a resource now.
-- ?1 resource, ?2 now
-- row: acquisition_id, token (text: all 63 bits), expires_at
SELECT acquisition_id, CAST(token AS TEXT) AS token, expires_at
FROM holds
WHERE resource = ?1 AND expires_at > ?2
LIMIT 1;
