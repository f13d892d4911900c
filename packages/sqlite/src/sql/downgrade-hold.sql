-- Makes an exclusive hold a shared one: only its owner's, only while it lives. Token and end stay.
-- ?1 resource, ?2 acquisition id, ?3 now
UPDATE holds SET kind = 1 /* shared */ WHERE resource = ?1 AND acquisition_id = ?2 AND expires_at > ?3 AND kind <> 2 /* permit */;
