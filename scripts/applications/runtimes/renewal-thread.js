// `renewal-thread.js <backend>` says whether a renewal thread keeps a lease while the event loop is blocked: ../renewal-thread/outcomes.js.
import process from 'node:process';
import { outcomes } from '../renewal-thread/outcomes.js';
import { openStore } from './stores.js';

process.env.LOCKS_STORE = process.argv[2];
const opened = [];
const outcome = await outcomes(new URL('./thread-backend.js', import.meta.url), async () => {
  opened.push(await openStore(process.env.LOCKS_STORE));
  return opened.at(-1).backend;
});
for (const { end } of opened) await end();
console.log(JSON.stringify(outcome));
process.exit();
