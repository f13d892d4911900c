-- Keeps all waiters of a client alive; changes no row if they were passed over or there are none.
-- ?1 client, ?2 alive until, ?3 now
UPDATE clients SET alive_until = max(alive_until, ?2) WHERE client = ?1 AND alive_until > ?3;
