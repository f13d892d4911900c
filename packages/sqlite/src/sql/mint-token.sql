-- The next fencing token. It starts from the wall clock, so that it rises even over a lost or restored file;
-- the clock being wrong only makes it jump: it never falls.
-- ?1 wall clock, microseconds
-- row: token (text), boot
UPDATE state SET token = max(token + 1, ?1) RETURNING CAST(token AS TEXT) AS token, boot;
