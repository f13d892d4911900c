-- After leave-line.sql.
-- ?1 client
DELETE FROM clients WHERE client = ?1;
