-- Ends all holds of a resource for a thief. A negative end: dead since now, and its owner can be told why.
-- ?1 resource, ?2 now
UPDATE holds SET expires_at = -expires_at WHERE resource = ?1 AND expires_at > ?2;
