-- Ends a hold of this very acquisition.
-- ?1 resource, ?2 acquisition id, ?3 now
-- row: live (0: it had expired before), none when it was not there
DELETE FROM holds WHERE resource = ?1 AND acquisition_id = ?2 RETURNING expires_at > ?3 AS live;
