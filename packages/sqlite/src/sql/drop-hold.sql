-- Removes a hold, whether it lives or not.
-- ?1 resource, ?2 acquisition id
DELETE FROM holds WHERE resource = ?1 AND acquisition_id = ?2;
