-- Takes an acquisition out of the queue.
-- ?1 client, ?2 acquisition id
DELETE FROM waiters WHERE client = ?1 AND acquisition_id = ?2;
