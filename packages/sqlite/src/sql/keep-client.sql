-- Keeps all waiters of a client alive.
-- ?1 client, ?2 alive until
INSERT INTO clients (client, alive_until) VALUES (?1, ?2)
ON CONFLICT (client) DO UPDATE SET alive_until = max(alive_until, excluded.alive_until);
