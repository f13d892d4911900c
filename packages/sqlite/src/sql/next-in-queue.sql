-- The lowest ticket above a given one whose process lives.
-- ?1 resource, ?2 now, ?3 ticket
-- row: ticket, acquisition_id, kind, weight, permits, client, alive_until, pid, pid_space
SELECT w.ticket, w.acquisition_id, w.kind, w.weight, w.permits, w.client, c.alive_until, c.pid, c.pid_space
FROM waiters w CROSS JOIN clients c ON c.client = w.client
WHERE w.resource = ?1 AND w.ticket > ?3 AND c.alive_until > ?2
ORDER BY w.ticket
LIMIT 1;
