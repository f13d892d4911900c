-- The next few holds, to find expired ones on names that nobody asks for any more.
-- ?1 resource and ?2 acquisition id to go on after, ?3 now, ?4 how many
-- rows: resource, acquisition_id, dead (1: its end is over)
SELECT resource, acquisition_id, abs(expires_at) <= ?3 AS dead
FROM holds
WHERE (resource, acquisition_id) > (?1, ?2)
ORDER BY resource, acquisition_id
LIMIT ?4;
