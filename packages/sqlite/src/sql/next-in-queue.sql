-- The lowest ticket above a given one whose process lives.
-- ?1 resource, ?2 now, ?3 ticket
-- row: ticket, acquisition_id, kind, weight, permits, client, alive_until, pid, pid_space
SELECT ticket, acquisition_id, kind, weight, permits, waiters.client, alive_until, pid, pid_space
FROM waiters CROSS JOIN clients ON clients.client = waiters.client
WHERE resource = ?1 AND ticket > ?3 AND alive_until > ?2
ORDER BY ticket
LIMIT 1;
