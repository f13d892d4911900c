-- Whose turn it is: the lowest ticket whose process lives.
-- ?1 resource, ?2 now
-- row: acquisition_id, client, alive_until, pid, pid_space
SELECT w.acquisition_id, w.client, c.alive_until, c.pid, c.pid_space
FROM waiters w CROSS JOIN clients c ON c.client = w.client
WHERE w.resource = ?1 AND c.alive_until > ?2
ORDER BY w.ticket
LIMIT 1;
