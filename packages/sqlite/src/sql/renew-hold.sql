-- Pushes the end of a hold back: only of the grant with this token, only while it lives.
-- ?1 resource, ?2 acquisition id, ?3 now, ?4 ttl, ?5 token (text)
UPDATE holds SET expires_at = ?3 + ?4, ttl = ?4
WHERE resource = ?1 AND acquisition_id = ?2 AND expires_at > ?3 AND token = CAST(?5 AS INTEGER);
