-- How many wait for a resource, without those whose process is silent.
-- ?1 resource, ?2 now
-- row: one
SELECT count(*) AS waiting
FROM waiters CROSS JOIN clients ON clients.client = waiters.client
WHERE resource = ?1 AND alive_until > ?2;
