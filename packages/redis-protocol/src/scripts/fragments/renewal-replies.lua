-- What a renewal answers for each lease: numbers, since words made the renewal of many leases a fifth slower (docs/adr/0017).
-- generate.mjs writes these lines into the TypeScript that reads the replies, too.
local nobody_holds = 0
local renewed = 1
local another_holds = 2
