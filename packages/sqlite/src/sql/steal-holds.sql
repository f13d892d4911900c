-- Ends all holds of a resource that is stolen. A negative end marks them, so that their owners learn why.
-- ?1 resource, ?2 now
UPDATE holds SET expires_at = -expires_at WHERE resource = ?1 AND expires_at > ?2;
