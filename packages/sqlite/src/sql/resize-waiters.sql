-- Sets the limit of the permits that are waited for; run after resize-holds.sql.
-- ?1 resource, ?2 limit
UPDATE waiters SET permits = ?2 WHERE resource = ?1 AND kind = 2 /* permit */;
