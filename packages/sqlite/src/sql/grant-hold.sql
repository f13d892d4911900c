-- Writes a hold. The caller has made sure, in this transaction, that it fits. Replaces what was stolen from the same id.
-- ?1 resource, ?2 acquisition id, ?3 kind, ?4 weight, ?5 permits, ?6 token (text), ?7 now, ?8 ttl, ?9 label
INSERT OR REPLACE INTO holds (resource, acquisition_id, kind, weight, permits, token, granted_at, expires_at, ttl, label)
VALUES (?1, ?2, ?3, ?4, ?5, CAST(?6 AS INTEGER), ?7, ?7 + ?8, ?8, ?9);
