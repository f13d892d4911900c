-- Keeps all waiters of a client alive.
-- ?1 client, ?2 alive until, ?3 pid, ?4 pid space
INSERT INTO clients (client, alive_until, pid, pid_space) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (client) DO UPDATE SET alive_until = max(alive_until, excluded.alive_until);
