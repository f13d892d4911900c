// The conformance suite on Bun, for the clients that Bun has built in: `bun-suite.js bun-redis|bun-sql` prints what failed.
import { conformanceCases, defineHarness, delegate, runConformance } from '@locks/core/conformance';
import process from 'node:process';

/** What fails on Bun with every backend, ioredis too. */
const ELSEWHERE = [
  // The clocks of two processes of Bun cannot be compared.
  'exclusion/three-processes-never-overlap',
  'fairness/order-over-three-processes',
  'shared/over-three-processes',
  'permits/over-three-processes',
  // Bun loses messages of `diagnostics_channel` once somebody has unsubscribed.
  'renewal/slow-hold-is-reported-once',
  'faults/unanswered-release',
  'faults/events-are-published',
  'idempotence/unanswered-abandon-is-sent-again',
  // An open connection of Bun keeps the process alive or not by rules of its own.
  'waiting/keeps-the-process-alive',
  // A module does not see the query of its URL on Bun, by which the thread of these cases finds the harness: `renewal-thread.js` has one without.
  'blocked/',
];

const clients = {
  async 'bun-redis'(url) {
    const { redisBackend } = await import('@locks/redis-protocol/bun');
    const client = new globalThis.Bun.RedisClient(url);
    return { backend: redisBackend(client), end: () => client.close() };
  },
  async 'bun-sql'(url) {
    const { postgresLeaseBackend } = await import('@locks/postgres/bun-sql');
    const sql = new globalThis.Bun.SQL(url);
    return { backend: postgresLeaseBackend(sql), end: () => sql.close() };
  },
};

// Child processes get the name by the environment.
const name = (process.env.LOCKS_BUN_CLIENT ??= process.argv[2]);
const url = name === 'bun-redis' ? process.env.REDIS_URL : process.env.POSTGRES_URL;

async function backendAt(address) {
  const { backend, end } = await clients[name](address);
  return delegate(backend, {
    async close() {
      await backend.close();
      await end();
    },
  });
}

const harness = defineHarness({
  module: import.meta.url,
  name,
  createBackend: () => backendAt(url),
  timing: { idleGapMs: 4_000, slackMs: 600 },
});

export default harness;

if (import.meta.main) {
  const only = conformanceCases
    .map(({ id }) => id)
    .filter((id) => !ELSEWHERE.some((one) => id.startsWith(one)));
  const { cases } = await runConformance(harness, { only });
  const outcomes = Object.groupBy(cases, ({ outcome }) => outcome);
  const { failed = [], passed = [] } = outcomes;
  console.log(
    JSON.stringify({
      failed: failed.map(({ id, reason }) => `${id}: ${reason}`),
      isMost: passed.length > 200,
    }),
  );
  process.exit(0);
}
