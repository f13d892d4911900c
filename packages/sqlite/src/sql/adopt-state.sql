-- The machine was started again (or the file is new): from now on times are readings of this boot's clock.
-- ?1 boot
INSERT INTO state (one, boot, token) VALUES (1, ?1, 0)
ON CONFLICT (one) DO UPDATE SET boot = excluded.boot;
