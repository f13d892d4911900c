-- Removes holds that end later than any hold of this boot can: an earlier boot, whose clock was further on, left them.
-- ?1 now, ?2 slack
DELETE FROM holds WHERE expires_at > ?1 + ttl + ?2;
