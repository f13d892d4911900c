-- The waiters of this client.
-- ?1 client
-- rows: acquisition_id
SELECT acquisition_id FROM waiters WHERE client = ?1;
