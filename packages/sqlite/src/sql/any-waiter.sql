-- Whether anybody is in the queue of a resource, also one whose process is silent.
-- ?1 resource
-- row: one, if so
SELECT 1 AS waits FROM waiters WHERE resource = ?1 LIMIT 1;
