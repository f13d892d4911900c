-- What became of a hold that could not be renewed.
-- ?1 resource, ?2 acquisition id, ?3 now
-- row: own_end (NULL: not there; negative: stolen), other (the kind of one that lives, or NULL)
SELECT (SELECT expires_at FROM holds WHERE resource = ?1 AND acquisition_id = ?2) AS own_end,
       (SELECT kind FROM holds WHERE resource = ?1 AND acquisition_id <> ?2 AND expires_at > ?3 LIMIT 1) AS other;
