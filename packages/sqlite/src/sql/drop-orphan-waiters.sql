-- Removes waiters whose client was removed.
DELETE FROM waiters WHERE client NOT IN (SELECT client FROM clients);
