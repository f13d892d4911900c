-- At close: this client waits for nothing any more.
-- ?1 client
DELETE FROM waiters WHERE client = ?1;
