-- Puts an acquisition at the end of the queue; one that waits already keeps its ticket.
-- ?1 resource, ?2 client, ?3 acquisition id, ?4 kind, ?5 weight, ?6 permits, ?7 now, ?8 label
INSERT INTO waiters (resource, ticket, client, acquisition_id, kind, weight, permits, enqueued_at, label)
VALUES (?1, (SELECT coalesce(max(ticket), 0) + 1 FROM waiters WHERE resource = ?1), ?2, ?3, ?4, ?5, ?6, ?7, ?8)
ON CONFLICT (client, acquisition_id) DO NOTHING;
