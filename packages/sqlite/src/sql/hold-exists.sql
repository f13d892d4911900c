-- What became of a hold that could not be renewed.
-- ?1 resource, ?2 acquisition id, ?3 now
-- row: own (it is there, so it ran out), taken (another lives)
SELECT EXISTS (SELECT 1 FROM holds WHERE resource = ?1 AND acquisition_id = ?2) AS own,
       EXISTS (SELECT 1 FROM holds WHERE resource = ?1 AND acquisition_id <> ?2 AND expires_at > ?3) AS taken;
