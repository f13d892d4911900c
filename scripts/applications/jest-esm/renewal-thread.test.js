import makeBackend from '../renewal-thread/locks-backend.js';
import { outcomes } from '../renewal-thread/outcomes.js';

test('a lease outlives a block of the event loop', async () => {
  const module = new URL('../renewal-thread/locks-backend.js', import.meta.url);
  const outcome = await outcomes(module, makeBackend);
  expect(outcome).toEqual({ withThread: 'held', without: 'LOCK_LOST', isRefused: true });
}, 20_000);
