-- Sets the limit of the permits that are held of a resource.
-- ?1 resource, ?2 limit
UPDATE holds SET permits = ?2 WHERE resource = ?1 AND kind = 2 /* permit */;
