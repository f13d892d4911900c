-- Removes a client; run after leave-queue.sql.
-- ?1 client
DELETE FROM clients WHERE client = ?1;
