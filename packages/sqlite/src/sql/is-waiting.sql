-- Whether an acquisition of this client is in the queue, and was not passed over.
-- ?1 client, ?2 acquisition id, ?3 now
-- row: one, if so
SELECT 1 AS waits
FROM waiters CROSS JOIN clients ON clients.client = waiters.client
WHERE waiters.client = ?1 AND acquisition_id = ?2 AND alive_until > ?3;
