-- The waiters of a resource, in the order of service, for operators.
-- ?1 resource, ?2 now
-- rows: acquisition_id, kind, weight, permits, label, enqueued_at
SELECT acquisition_id, kind, weight, permits, label, enqueued_at
FROM waiters CROSS JOIN clients ON clients.client = waiters.client
WHERE resource = ?1 AND alive_until > ?2
ORDER BY ticket;
