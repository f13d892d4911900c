import { createLocks, isLockError, type Lock, type LockManager } from '@locks/core';
import type { LockBackend } from '@locks/core/backend';
import { memoryBackend, MemoryStore } from '../../src/index.ts';
import { CircleJudge, type Want } from './circle-judge.ts';

/** How long a wait lasts before circles are looked for, in milliseconds. */
export const PERIOD = 200;
/** How long a circle may stand: three periods, and what timers of whole milliseconds add. */
export const LIMIT = 3 * PERIOD + 5;
/** The beginning of the names of what tells of waits. */
export const WAITS = '@locks/waits/';

/** What one member does: it takes one lock inside the other, each after a pause in milliseconds. */
export type Steps = readonly (Want & { readonly afterMs: number })[];

export interface Fault {
  /**
   * `killed`: nothing of a member is sent or heard any more. `stalled`: for a time. `left`: it gives up its wait, and holds for some time
   * what it has. `edges lost`: the store drops what tells of waits.
   */
  readonly kind: 'killed' | 'stalled' | 'left' | 'edges lost';
  readonly member: number;
  readonly atMs: number;
  readonly forMs: number;
}

export interface Script {
  readonly name: string;
  readonly members: readonly Steps[];
  readonly fault?: Fault | undefined;
}

/** What stands between a member and the store. */
export type Lie = (backend: LockBackend) => Partial<LockBackend>;

/** A pause in the time of the test, which `node:timers/promises` knows nothing of. */
const delay = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Runs the members, each with a manager of its own as in a process of its own, and gives their judge once all have ended. */
export async function runScript({ members, fault }: Script, lie: Lie = () => ({})): Promise<CircleJudge> {
  const store = new MemoryStore();
  const judge = new CircleJudge(LIMIT);
  const connections = members.map(() => new Connection(store, lie));
  const leave = members.map(() => new AbortController());
  const ends = members.map((steps, id) =>
    live(id, steps, connections[id] as Connection, judge, (leave[id] as AbortController).signal),
  );
  if (fault?.kind === 'left') setTimeout(() => leave[fault.member]?.abort('left'), fault.atMs);
  else if (fault !== undefined) void strike(fault, store, connections, judge);
  await Promise.all(ends.filter((_, id) => fault?.kind !== 'killed' || id !== fault.member));
  return judge;
}

async function live(
  id: number,
  steps: Steps,
  { backend }: Connection,
  judge: CircleJudge,
  signal: AbortSignal,
): Promise<void> {
  const locks = createLocks(backend, {
    waitMs: 60 * PERIOD,
    ttlMs: 10 * PERIOD,
    deadlockAfterMs: PERIOD,
  }) as LockManager;
  const take = async (index: number): Promise<void> => {
    const step = steps[index];
    if (step === undefined) return;
    await delay(step.afterMs);
    let isAsking = true;
    judge.asks(id, step);
    try {
      await lockOf(locks, step).run(
        async () => {
          isAsking = false;
          judge.holds(id, step);
          await take(index + 1).finally(() => judge.gives(id, step));
        },
        { signal, ...(step.how === 'both' && { weight: 2 }) },
      );
    } catch (error) {
      if (isAsking) judge.refused(id, isLockError(error) ? error.code : String(error));
      if (isAsking && error === signal.reason) await delay(3 * PERIOD);
      throw error;
    }
  };
  await take(0).catch(() => {});
}

function lockOf(locks: LockManager, { lock, how }: Want): Lock {
  if (how === 'one' || how === 'both') return locks.semaphore(lock, 2) as unknown as Lock;
  return locks.readWriteLock(lock)[how];
}

async function strike(
  { kind, member, atMs, forMs }: Fault,
  store: MemoryStore,
  connections: readonly Connection[],
  judge: CircleJudge,
): Promise<void> {
  await delay(atMs);
  switch (kind) {
    case 'killed':
      connections[member]?.stopUntil(new Promise(() => {}));
      return judge.dies(member);
    case 'stalled':
      connections[member]?.stopUntil(delay(forMs));
      return judge.disturbed(performance.now() + forMs, false);
    case 'edges lost': {
      const backend: LockBackend = memoryBackend(store);
      const call = { now: () => performance.now(), deadline: Number.POSITIVE_INFINITY };
      const names = store.names().filter((name) => name.startsWith(WAITS));
      for (const name of names) await backend.forceRelease?.(name, undefined, call);
      // The members learn of it when they next renew what is gone.
      return names.length > 0 ? judge.disturbed(performance.now() + PERIOD, true) : undefined;
    }
    case 'left':
      return;
    default:
      return kind satisfies never;
  }
}

/** A way to the store on which nothing passes while it stands still. */
class Connection {
  readonly backend: LockBackend;
  #isOpen: Promise<unknown> = Promise.resolve();

  constructor(store: MemoryStore, lie: Lie) {
    const own: LockBackend = memoryBackend(store);
    const told = lie(own);
    const pass =
      <Given extends unknown[], T>(call: (...given: Given) => T) =>
      async (...given: Given): Promise<Awaited<T>> => {
        await this.#isOpen;
        const answer = await call(...given);
        await this.#isOpen;
        return answer;
      };
    const methods = [
      'attempt',
      'attemptMany',
      'awaitTurn',
      'renew',
      'inspect',
      'abandon',
      'release',
    ] as const;
    const passed = methods.map((method) => {
      const call = told[method]?.bind(told) ?? own[method]?.bind(own);
      return [method, pass(call as (...given: unknown[]) => unknown)];
    });
    this.backend = Object.assign(Object.create(own) as LockBackend, Object.fromEntries(passed), {
      close: () => own.close(),
    });
  }

  stopUntil(end: Promise<unknown>): void {
    this.#isOpen = end;
  }
}
