-- How a resource is held now: all its holds as one row, no row when there is none, not even an expired one.
-- ?1 resource, ?2 now
-- row: holders (how many live), used (their weights), and of the live one that ends first: acquisition_id, kind, weight,
--      permits, token (text: all 63 bits), expires_at (SQLite takes bare columns from the row of the one min())
SELECT sum(expires_at > ?2) AS holders, sum(weight * (expires_at > ?2)) AS used,
       min(CASE WHEN expires_at > ?2 THEN expires_at END) AS expires_at,
       acquisition_id, kind, weight, permits, CAST(token AS TEXT) AS token
FROM holds
WHERE resource = ?1
HAVING count(*) > 0;
