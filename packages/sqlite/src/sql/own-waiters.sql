-- What the file says of this client's waiters.
-- ?1 client
-- rows: acquisition_id
SELECT acquisition_id FROM waiters WHERE client = ?1;
