-- A client that has no waiters: it is new, or its waiters were removed because it was passed over.
-- ?1 client, ?2 alive until, ?3 pid, ?4 pid space
INSERT INTO clients (client, alive_until, pid, pid_space) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (client) DO UPDATE SET alive_until = excluded.alive_until;
