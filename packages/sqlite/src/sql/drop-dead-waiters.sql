-- Removes the waiters of processes that ended or froze.
-- ?1 now
DELETE FROM waiters WHERE client IN (SELECT client FROM clients WHERE alive_until <= ?1);
