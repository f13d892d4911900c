-- A client waits for nothing any more: it closes, or its process ended.
-- ?1 client
DELETE FROM waiters WHERE client = ?1;
