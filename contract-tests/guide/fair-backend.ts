import { setTimeout as delay } from 'node:timers/promises';
import type { AcquireRequest, Attempt, Call, Grant, LockBackend } from '@locks/core/backend';
import type { RenewItem, ResourceState, RenewalStatus } from '@locks/core/backend';
import { MAX_TIMEOUT_MS, optional, type OptionTable, readOptions } from '@locks/core/backend';
import { refuseAfterClose, text, TurnWait, wholeNumber } from '@locks/core/backend';
import { ConnectionLost, KvClient } from './kv-client.ts';

export interface FairBackendOptions {
  readonly host: string;
  readonly port: number;
  /** The steps in which the store counts time, in milliseconds. @defaultValue 1 */
  readonly stepMs?: number;
}

const table = {
  host: text('the host of the server', /./),
  port: wholeNumber(1, 65_535),
  stepMs: optional(wholeNumber(1, 60_000), 1),
} satisfies OptionTable<FairBackendOptions>;

/** How long a hand-off is kept for a waiter that may be dead. */
const HAND_OFF_MS = 1_000;
const LONGEST_PAUSE_MS = 20;

/** One acquisition in the queue of a resource. The first one holds it. Times are the store's. */
interface Entry {
  readonly id: string;
  readonly label?: string;
  readonly ttlMs: number;
  readonly since: number;
  /** Only the holder has an end. */
  readonly ends?: number;
  /** The revision of the write that made it the holder. Absent in that write, which does not know it yet. */
  readonly token?: number;
}

/** The value of a key: the holder and the waiters, in order. */
type Queue = readonly Entry[];

/** The queue as a step finds it: without expired holds, and the next waiter holds for a moment. */
interface Found {
  readonly queue: Queue;
  readonly now: number;
  /** `now()` of core, before the queue was requested. */
  readonly askedAt: number;
}

interface Change<T> {
  /** The queue to write. */
  readonly queue?: Queue;
  /** The result, given the revision of the key after the step: the token of a holder that has none yet. */
  readonly result: (revision: number) => T;
}

/** The queue of a key that was read with this revision. */
function parse(value: string | null, revision: number): Queue {
  const [holder, ...others] = JSON.parse(value ?? '[]') as Queue;
  return holder === undefined ? [] : [{ token: revision, ...holder }, ...others];
}

/** The value for a queue; without entries there is no key. */
function print(queue: Queue): string | null {
  return queue.length === 0 ? null : JSON.stringify(queue);
}

export function fairBackend(options: FairBackendOptions): LockBackend {
  const { host, port, stepMs } = readOptions('fairBackend()', options, table);
  const store = new KvClient(host, port);
  const mine = new Map<string, Promise<unknown>>(); // the last step of this process on a key

  const endOf = (now: number, ttlMs: number): number => Math.ceil((now + ttlMs) / stepMs) * stepMs;

  function serve(queue: Queue, now: number): Queue {
    const [holder, ...others] = queue;
    if (holder?.ends !== undefined && holder.ends <= now) return serve(others, now);
    if (holder === undefined || holder.ends !== undefined) return queue;
    return [{ ...holder, since: now, ends: endOf(now, Math.min(holder.ttlMs, HAND_OFF_MS)) }, ...others];
  }

  /**
   * One atomic step: reads the queue, and writes the result of `change` only if nobody else has written meanwhile. Otherwise it
   * begins again, after a random pause that grows, so that two clients do not disturb each other for ever.
   */
  async function step<T>(key: string, call: Call, change: (found: Found) => Change<T>): Promise<T> {
    for (let tries = 0; ; tries += 1) {
      const askedAt = call.now();
      const { value, revision, now } = await store.get(key);
      const read = parse(value, revision);
      const { queue = read, result } = change({ queue: serve(read, now), now, askedAt });
      const next = print(serve(queue, now));
      if (next === print(read)) return result(revision);
      const written = await store.put(key, next, revision);
      if (written.done) return result(written.revision);
      if (call.now() > call.deadline) throw new ConnectionLost('too many clients wrote at the same time');
      await delay(Math.random() * Math.min(LONGEST_PAUSE_MS, 2 ** tries));
    }
  }

  /** Runs the steps of this process on one key one after the other: they would only hinder each other. */
  function inTurn<T>(key: string, act: () => Promise<T>): Promise<T> {
    const done = (mine.get(key) ?? Promise.resolve()).then(act, act);
    mine.set(key, done);
    const forget = () => void (mine.get(key) === done && mine.delete(key));
    done.then(forget, forget);
    return done;
  }

  const update: typeof step = (key, call, change) => inTurn(key, () => step(key, call, change));

  /** Removes an acquisition; the resource of a holder goes to the next waiter in the same write. */
  function remove({ resource, acquisitionId }: AcquireRequest, call: Call): Promise<boolean> {
    return update(resource, call, ({ queue }) => {
      const others = queue.filter(({ id }) => id !== acquisitionId);
      return { queue: others, result: () => queue[0]?.id === acquisitionId };
    });
  }

  function renewOne({ grant, ttlMs }: RenewItem, call: Call): Promise<RenewalStatus> {
    const { resource, acquisitionId } = grant.request;
    return update<RenewalStatus>(resource, call, ({ queue: [holder, ...others], now }) => {
      if (holder === undefined) return { result: () => ({ status: 'lost', reason: 'force-released' }) };
      const isOwn = holder.id === acquisitionId && BigInt(holder.token ?? 0) === grant.fencingToken;
      if (!isOwn) return { result: () => ({ status: 'lost', reason: 'taken-over' }) };
      const renewed = { ...holder, ttlMs, ends: endOf(now, ttlMs) };
      return { queue: [renewed, ...others], result: () => ({ status: 'held' }) };
    });
  }

  return refuseAfterClose({
    spec: 'locks-backend/1',
    name: 'fair',
    capabilities: {
      tenure: 'lease',
      renewal: 'any-client',
      reach: 'network',
      modes: ['exclusive'],
      order: 'fifo',
      fencing: 'volatile', // as the revisions of this store are
      ttl: { minMs: Math.max(20, stepMs), stepMs },
      features: ['waiters', 'force-release'],
    },

    // A release may lose the race to many clients that write at the same time.
    releaseBudgetMs: 3_000,

    attempt(request: AcquireRequest, enqueue: boolean, call: Call): Promise<Attempt> {
      const { resource, acquisitionId: id, label, ttlMs } = request;
      return update<Attempt>(resource, call, ({ queue, now, askedAt }) => {
        const granted = (token: number, validForMs: number): Attempt => {
          return {
            status: 'granted',
            grant: { request, countedFrom: askedAt, fencingToken: BigInt(token), validForMs },
          };
        };
        const [holder, ...others] = queue;
        if (holder === undefined) {
          const mine = { id, label, ttlMs, since: now, ends: endOf(now, ttlMs) };
          return { queue: [mine], result: (revision) => granted(revision, ttlMs) };
        }
        const { token, ends = now } = holder;
        // The id holds already, by an earlier attempt or a hand-off: its grant has the rest of that time.
        if (holder.id === id) return { queue, result: (revision) => granted(token ?? revision, ends - now) };
        const waits = others.some((entry) => entry.id === id);
        const queued = waits || !enqueue ? queue : [...queue, { id, label, ttlMs, since: now }];
        return { queue: queued, result: () => ({ status: 'contended' }) };
      });
    },

    awaitTurn({ resource, acquisitionId }: AcquireRequest, call: Call): Promise<Grant | undefined> {
      let timer: NodeJS.Timeout | undefined;
      const wait = new TurnWait(() => {
        clearTimeout(timer);
        unwatch();
      });
      const unwatch = store.watch(resource, (reply) => {
        clearTimeout(timer);
        const queue = parse(reply?.value ?? null, 0);
        const position = queue.findIndex(({ id }) => id === acquisitionId);
        // Its turn has come, or its entry or the connection is gone: the attempt that follows will show which.
        if (reply === undefined || position <= 0) return void wait.end();
        // All waiters before it may be dead, and nobody else may check: it is due when the time of all of them is over.
        const dueMs = (queue[0]?.ends ?? 0) - reply.now + (position - 1) * (HAND_OFF_MS + stepMs);
        timer = setTimeout(() => wait.end(), Math.max(1, Math.min(Math.ceil(dueMs), MAX_TIMEOUT_MS)));
      });
      return wait.begin(call);
    },

    async abandon(request: AcquireRequest, call: Call): Promise<void> {
      await remove(request, call);
    },

    renew: (items: readonly RenewItem[], call: Call) =>
      Promise.all(items.map((item) => renewOne(item, call))),

    async release({ request }: Grant, call: Call): Promise<'released' | 'not-held'> {
      return (await remove(request, call)) ? 'released' : 'not-held';
    },

    inspect(resource: string, call: Call): Promise<ResourceState> {
      return update<ResourceState>(resource, call, ({ queue, now }) => {
        const [holders, waiters] = [queue.slice(0, 1), queue.slice(1)];
        const shown = ({ id, label }: Entry) => {
          return {
            acquisitionId: id,
            mode: { kind: 'exclusive' } as const,
            ...(label !== undefined && { label }),
          };
        };
        const held = (revision: number) => {
          return holders.map((entry) => {
            const { token = revision, ends = now, since } = entry;
            const times = { heldForMs: now - since, expiresInMs: ends - now };
            return { ...shown(entry), fencingToken: BigInt(token), ...times };
          });
        };
        const waiting = waiters.map((entry) => ({ ...shown(entry), waitingForMs: now - entry.since }));
        // Written, as a hand-off that this step makes has its token only then.
        return {
          queue,
          result: (revision) => ({ name: resource, holders: held(revision), waiters: waiting }),
        };
      });
    },

    async forceRelease(resource: string, expectedId: string | undefined, call: Call) {
      const { holders } = await this.inspect(resource, call);
      const ended = holders.filter(({ acquisitionId: id }) => expectedId === undefined || id === expectedId);
      for (const { acquisitionId } of ended) {
        await remove({ resource, acquisitionId, mode: { kind: 'exclusive' }, ttlMs: 1 }, call);
      }
      return ended;
    },

    isRetryable: (error) => error instanceof ConnectionLost,

    async close(): Promise<void> {
      store.close();
    },
  });
}
