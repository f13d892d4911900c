-- The next page of names that are held or waited for, in byte order.
-- ?1 name to start after, ?2 whether ?1 itself counts (1) or not (0), ?3 now, ?4 page size
-- rows: resource
SELECT resource FROM (
  SELECT resource FROM holds WHERE resource >= ?1 AND (?2 OR resource > ?1) AND expires_at > ?3
  UNION
  SELECT resource FROM waiters CROSS JOIN clients ON clients.client = waiters.client
  WHERE resource >= ?1 AND (?2 OR resource > ?1) AND alive_until > ?3
)
ORDER BY resource
LIMIT ?4;
