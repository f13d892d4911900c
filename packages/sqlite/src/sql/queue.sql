-- The waiters of a resource, in the order of service, for operators.
-- ?1 resource, ?2 now
-- rows: acquisition_id, kind, weight, permits, label, enqueued_at
SELECT w.acquisition_id, w.kind, w.weight, w.permits, w.label, w.enqueued_at
FROM waiters w CROSS JOIN clients c ON c.client = w.client
WHERE w.resource = ?1 AND c.alive_until > ?2
ORDER BY w.ticket;
