-- Clears what ran out, before a new hold of the resource is written; a stolen hold stays to tell of it until its own end.
-- ?1 resource, ?2 now
DELETE FROM holds WHERE resource = ?1 AND abs(expires_at) <= ?2;
