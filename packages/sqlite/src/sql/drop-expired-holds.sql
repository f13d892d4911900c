-- Removes expired holds before a new hold of the resource is written; a stolen one stays until its own end, for its owner to learn of it.
-- ?1 resource, ?2 now
DELETE FROM holds WHERE resource = ?1 AND abs(expires_at) <= ?2;
