-- Clears what ran out, before a new hold of the resource is written.
-- ?1 resource, ?2 now
DELETE FROM holds WHERE resource = ?1 AND expires_at <= ?2;
