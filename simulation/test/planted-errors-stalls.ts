import type { PlantedError } from './planted-error.ts';

/** What a stall of an event loop, or a connection without a pause, brings to light: bugs of the track record, and lines that stand for others. */
export const errorsOfStalls: readonly PlantedError[] = [
  {
    backend: 'rules',
    what: 'the time of a stall counts for a call',
    seed: 291,
    change: {
      file: 'core/src/backend/time-budget.ts',
      from: 'isStall ? Math.min(lateMs, LARGEST_STALLED_PART * this.#stepMs) : 0',
      to: '0',
    },
  },
  {
    backend: 'etcd',
    what: 'the time of a stall counts for a call',
    seed: 279,
    change: {
      file: 'core/src/backend/time-budget.ts',
      from: 'isStall ? Math.min(lateMs, LARGEST_STALLED_PART * this.#stepMs) : 0',
      to: '0',
    },
  },
  {
    backend: 'redis',
    what: 'a hand-off in a reply is counted from after a stall',
    seed: 1_675,
    change: {
      file: 'redis-protocol/src/backend.ts',
      from: '() => call.now() - sentAt',
      to: '() => 0',
    },
  },
  {
    backend: 'rules',
    what: 'a stall between the readings of two clocks counts twice',
    seed: 544,
    change: {
      file: 'core/src/lifetime/clock.ts',
      from: 'monotonic = performance.now();\n      drift = Date.now() - monotonic - this.#skew;',
      to: '',
    },
  },
  {
    backend: 'record',
    what: 'a heartbeat that was read before a stall tells of the time after it',
    seed: 2_091_172_908,
    change: {
      file: 'record-protocol/src/records-as-table.ts',
      from: 'see(client, records[index], askedAt)',
      to: 'see(client, records[index], performance.now())',
    },
  },
  {
    backend: 'postgres',
    what: 'the time of a stall counts for a check of the waiters that waits for a connection',
    seed: 1_308_825_289,
    change: {
      file: 'postgres/src/lease/waiter-heartbeat.ts',
      from: 'return isGivenUp ? Number.NEGATIVE_INFINITY : now() + ANSWER_MS;',
      to: 'return ((this as { readAt?: number }).readAt ??= now() + ANSWER_MS);',
    },
  },
  {
    backend: 'postgres',
    what: 'renewals without a pause keep acquires from the pool for ever',
    seed: 1_157_787_077,
    change: {
      file: 'core/src/backend/connection-queue.ts',
      from: 'this.#passes < MOST_PASSES',
      to: 'true',
    },
  },
];
