-- Ends a hold whatever its state.
-- ?1 resource, ?2 acquisition id
DELETE FROM holds WHERE resource = ?1 AND acquisition_id = ?2;
