-- One acquisition's live hold, where several may be.
-- ?1 resource, ?2 acquisition id, ?3 now
-- row: token (text), expires_at
SELECT CAST(token AS TEXT) AS token, expires_at
FROM holds
WHERE resource = ?1 AND acquisition_id = ?2 AND expires_at > ?3;
