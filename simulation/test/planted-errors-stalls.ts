import type { PlantedError } from './planted-errors.ts';

/** What a stall of an event loop brings to light: bugs of the track record, and lines that stand for others. */
export const errorsOfStalls: readonly PlantedError[] = [
  {
    backend: 'rules',
    what: 'the time of a stall counts for a call',
    seed: 1,
    change: {
      file: 'core/src/backend/time-budget.ts',
      from: 'isStall ? Math.min(lateMs, LARGEST_STALLED_PART * this.#stepMs) : 0',
      to: '0',
    },
  },
  {
    backend: 'etcd',
    what: 'the time of a stall counts for a call',
    seed: 1,
    change: {
      file: 'core/src/backend/time-budget.ts',
      from: 'isStall ? Math.min(lateMs, LARGEST_STALLED_PART * this.#stepMs) : 0',
      to: '0',
    },
  },
  {
    backend: 'rules',
    what: 'the time of a stall counts for a release',
    seed: 1,
    change: {
      file: 'core/src/call/release-sender.ts',
      from: 'stalledMs += Math.max(0, context.endsAt - resendAt);',
      to: '',
    },
  },
  {
    backend: 'rules',
    what: 'a call is given up before an answer is read that came during a stall',
    seed: 1,
    change: {
      file: 'core/src/call/call-deadlines.ts',
      from: 'setImmediate(interruptAll, over)',
      to: 'interruptAll(over)',
    },
  },
  {
    backend: 'redis',
    what: 'a hand-off in a reply is counted from after a stall',
    seed: 1,
    change: {
      file: 'redis-protocol/src/backend.ts',
      from: '() => call.now() - sentAt',
      to: '() => 0',
    },
  },
  {
    backend: 'etcd',
    what: 'a heartbeat after a stall gives up who waits',
    seed: 1,
    change: {
      file: 'etcd/src/watching-waiters.ts',
      from: 'setImmediate(() => {\n      for',
      to: '[0].forEach(() => {\n      for',
    },
  },
];
