-- Waiters whose client is gone.
DELETE FROM waiters WHERE client NOT IN (SELECT client FROM clients);
