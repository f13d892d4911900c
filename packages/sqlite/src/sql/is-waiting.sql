-- Whether an acquisition of this client is in the queue, and was not passed over.
-- ?1 client, ?2 acquisition id, ?3 now
-- row: one, if so
SELECT 1 AS waits
FROM waiters w CROSS JOIN clients c ON c.client = w.client
WHERE w.client = ?1 AND w.acquisition_id = ?2 AND c.alive_until > ?3;
