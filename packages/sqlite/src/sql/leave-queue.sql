-- Removes all waiters of a client: it closes, or its process ended.
-- ?1 client
DELETE FROM waiters WHERE client = ?1;
