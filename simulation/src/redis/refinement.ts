import type { LockMode } from '@locks/core/backend';
import { LockRules, type WaiterRecord } from '@locks/core/rules';
import { type LockView, viewOf } from './lock-view.ts';
import { callerOf, checkedBy, NOBODY, type ScriptCall, type Step, stepOf } from './script-step.ts';
import type { SimulatedRedis } from './simulated-redis.ts';

/** One lock as the rules see it: what is compared after each script. */
export interface LockSummary {
  /** In the order of their grants. */
  readonly holds: readonly {
    readonly id: string;
    readonly mode: LockMode;
    readonly until: number | undefined;
  }[];
  /** Of processes that live, in their order. */
  readonly waiters: readonly {
    readonly id: string;
    readonly mode: LockMode;
    readonly client: string;
    readonly ttl: number;
  }[];
}

/** A script did something else than the rules. */
export class RefinementError extends Error {
  override readonly name = 'RefinementError';
}

/** What one call may change: its locks with the keys of their tokens. */
function locksOf({ script, keys }: ScriptCall): readonly (readonly [lock: string, token: string])[] {
  const every = (step: number) =>
    keys.flatMap((key, at) => (at % step === 0 ? [[key, keys[at + 1] ?? ''] as const] : []));
  if (script === 'many') return every(4);
  if (script === 'check') return every(3);
  if (script === 'renew-shares') return every(2);
  if (script === 'renew') return every(1);
  return every(keys.length);
}

/**
 * Runs one script and compares what it made of its locks with what the rules of `@locks/core/rules` make of them in the same
 * step. Scripts that only read, and those that see one key of several, are not decided by the rules: `inspect`, `release-key`,
 * `renew-part`, `fenced-set`. Where scripts differ from the rules on purpose:
 *
 * - The rules serve whoever fits in every step. A script that ends nothing leaves that to the next check: a release, an abandon
 *   or a forced release of what does not hold, a renewal, and an attempt beside shares of which none has ended.
 * - A waiter is passed over when its turn comes, not when its process dies: until then it holds back those behind it, if the
 *   script does not serve the queue.
 * - A waiter that came twice is not compared: the next check, or the end of the lease, puts that right.
 * - A check puts waiters of its process back to their positions, also beside holders of the other family, permits or not. A
 *   resize then goes by the holders, and is not compared.
 */
export class Refinement {
  readonly #server: SimulatedRedis;
  readonly #micros: () => number;

  constructor(server: SimulatedRedis, micros: () => number) {
    this.#server = server;
    this.#micros = micros;
  }

  /** Executes the script by `execute`, and throws a `RefinementError` if it did not do what the rules say. */
  run<T>(call: ScriptCall, execute: () => T): T {
    const steps = this.#expect(call);
    const reply = execute();
    for (const { lock, token, own, expected, before, isComparable } of steps) {
      const view = this.#view(lock, token);
      if (!isComparable) continue;
      const found = summary(view.record, (client) => this.#isAlive(view, client, own));
      const isOrdered = isGrantedAbove(view, before);
      const isClean = !view.hasEmptyQueue || before.hasEmptyQueue;
      if (isOrdered && isClean && JSON.stringify(found) === JSON.stringify(expected)) continue;
      throw new RefinementError(
        JSON.stringify(
          { call, lock, now: this.#now, before: before.record, expected, found, isOrdered, isClean },
          null,
          1,
        ),
      );
    }
    this.#checkReply(call, steps, reply);
    return reply;
  }

  /** A release says whether the id held, and nothing else. */
  #checkReply({ script, args }: ScriptCall, [step]: readonly Expectation[], reply: unknown): void {
    if (script !== 'release' || step?.isComparable !== true) return;
    const [id] = args;
    const wasHeld = step.before.record.holds.some((hold) => hold.id === id);
    const [word] = Array.isArray(reply) ? (reply as unknown[]) : [reply];
    // A release by a command of the server's own is answered with 1.
    const answers: readonly unknown[] = wasHeld ? ['released', 1] : ['not-held'];
    if (answers.includes(word)) return;
    throw new RefinementError(
      `a release of ${id}, which ${wasHeld ? 'held' : 'did not hold'}, replied ${String(reply)}`,
    );
  }

  get #now(): number {
    return Math.floor(this.#micros() / 1000);
  }

  #view(lock: string, token: string): LockView {
    return viewOf(this.#server, lock, token, this.#now);
  }

  #expect(call: ScriptCall): readonly Expectation[] {
    const locks = locksOf(call);
    const views = locks.map(([lock, token]) => ({ lock, token, view: this.#view(lock, token) }));
    const notify = callerOf(call);
    const own = channelOf(notify);
    const isTaken = call.script !== 'many' || this.#takesAll(call, views);
    let isStopped = false;
    return views.flatMap(({ lock, token, view }, index): Expectation[] => {
      // Several holds of one lock may be renewed in one call: all its steps are decided with the first.
      const same = [...locks.keys()].filter((at) => locks[at]?.[0] === lock);
      if (same[0] !== index) return [];
      const steps = same.flatMap((at) => (isStopped ? () => false : (stepOf(call, at, view, isTaken) ?? [])));
      if (steps.length === 0) return [];
      const step = (rules: LockRules) => steps.filter((each) => each(rules)).length > 0;
      const before = call.script === 'check' ? this.#withChecked(call, index, view) : view;
      const rules = this.#decide(before, step, notify, call.script === 'check');
      // `many` looks at no lock behind the first one that is not free.
      if (call.script === 'many' && !isTaken) isStopped = !this.#isFree(call, index, view);
      rules.commit(this.#now);
      const alive = (client: string) => this.#isAlive(before, client, own);
      const isComparable = before.repeated.size === 0;
      return [{ lock, token, own, before: view, isComparable, expected: summary(rules, alive) }];
    });
  }

  #takesAll(call: ScriptCall, views: readonly { readonly view: LockView }[]): boolean {
    return views.every(({ view }, index) => this.#isFree(call, index, view));
  }

  #isFree(call: ScriptCall, index: number, view: LockView): boolean {
    const id = call.args[5 * index] ?? '';
    return (
      this.#decide(view, stepOf(call, index, view, true) ?? (() => false), NOBODY, false).holdOf(id) !==
      undefined
    );
  }

  /** The state after a step: waiters that Redis passes over are taken out one by one, and the step is decided again. */
  #decide(view: LockView, step: Step, notify: string, asksAll: boolean): LockRules {
    const own = channelOf(notify);
    const passedOver = new Set<string>();
    for (;;) {
      const { token, holds, waiters } = view.record;
      const left = waiters.filter(({ id }) => !passedOver.has(id));
      // A waiter that hears no message is served by its own process.
      const serves = (client: string): boolean => !client.startsWith('!') || channelOf(client) === own;
      const rules = new LockRules({ token, holds, waiters: left }, { client: notify, serves });
      rules.expire(this.#now);
      if (!step(rules)) return rules;
      const handedOff = new Set(rules.handedOff.map(({ id }) => id));
      const isGone = ({ client }: WaiterRecord, isServed: boolean): boolean =>
        !this.#isAlive(view, client, own) || ((isServed || asksAll) && !this.#isListening(client, own));
      // What is full by a grant of this step is known to be full without a look at the next waiter.
      const head = isFilled(rules) ? undefined : rules.waiters[0];
      const gone =
        left.find((waiter) => handedOff.has(waiter.id) && isGone(waiter, true)) ??
        (head !== undefined && isGone(head, false) ? head : undefined);
      if (gone === undefined) return rules;
      passedOver.add(gone.id);
    }
  }

  #isAlive(view: LockView, client: string, own: string): boolean {
    return channelOf(client) === own || (view.aliveUntil.get(client) ?? 0) * 1000 >= this.#micros();
  }

  #isListening(client: string, own: string): boolean {
    const channel = channelOf(client);
    return channel === own || !client.startsWith('=') || this.#server.listeners(channel) > 0;
  }

  /** The waiters that a check names stand in the queue, unless they hold. */
  #withChecked(call: ScriptCall, index: number, view: LockView): LockView {
    const { notify, waiters } = checkedBy(call, index);
    const isDeaf = !this.#isListening(notify, NOBODY);
    const now = isDeaf ? `!${channelOf(notify)}` : notify;
    const moves = notify.startsWith('=') ? (isDeaf ? '=' : '!') : call.args[0]?.split('|')[1];
    const holding = new Set(view.record.holds.map(({ id }) => id));
    const queued = new Map(view.record.waiters.map((waiter) => [waiter.id, waiter]));
    const positions = new Map(view.positions);
    const repeated = new Set(view.repeated);
    for (const { waiter, position } of waiters) {
      const client = queued.get(waiter.id)?.client;
      // The network repeated a check from before the waiter was moved: from now on it waits twice.
      if (client !== undefined && client !== now && client[0] !== moves) repeated.add(waiter.id);
      if (holding.has(waiter.id)) queued.delete(waiter.id);
      else {
        // A waiter that moves to the channel of its process comes to the position that the check names, and one that was passed over
        // and has attempted since comes back to it.
        const had = client === now ? positions.get(waiter.id) : undefined;
        positions.set(waiter.id, Math.min(had ?? position, position));
        queued.set(waiter.id, { ...(queued.get(waiter.id) ?? resized(waiter, view)), client: now });
      }
    }
    const inOrder = [...queued.values()].sort(
      (a, b) => (positions.get(a.id) ?? 0) - (positions.get(b.id) ?? 0),
    );
    return { ...view, positions, repeated, record: { ...view.record, waiters: inOrder } };
  }
}

interface Expectation {
  readonly lock: string;
  readonly token: string;
  readonly own: string;
  readonly before: LockView;
  /** The rules know what comes of it: see {@link Refinement}. */
  readonly isComparable: boolean;
  readonly expected: LockSummary;
}

/** Whether the last waiter that was served took what was left. */
function isFilled({ handedOff, holds }: LockRules): boolean {
  const mode = handedOff.at(-1)?.mode;
  if (mode?.kind !== 'permit') return mode?.kind === 'exclusive';
  const used = holds.reduce((sum, hold) => sum + (hold.mode.kind === 'permit' ? hold.mode.weight : 0), 0);
  return used >= mode.limit;
}

/** A waiter that was passed over comes back with the limit that permits have by now. */
function resized(waiter: WaiterRecord, { permitLimit }: LockView): WaiterRecord {
  const { mode } = waiter;
  if (mode.kind !== 'permit' || permitLimit === 0) return waiter;
  return { ...waiter, mode: { ...mode, limit: permitLimit } };
}

function channelOf(notify: string): string {
  return notify.slice(1);
}

function summary(
  { holds, waiters }: Pick<LockRules, 'holds' | 'waiters'>,
  isAlive: (client: string) => boolean,
): LockSummary {
  return {
    holds: holds.toSorted((a, b) => a.token - b.token).map(({ id, mode, until }) => ({ id, mode, until })),
    waiters: waiters
      .filter(({ client }) => isAlive(client))
      .map(({ id, mode, client, ttl }) => ({ id, mode, client, ttl })),
  };
}

/** Whether every new hold has a token above all that were given out before. */
function isGrantedAbove(after: LockView, before: LockView): boolean {
  const known = new Map(before.record.holds.map(({ id, token }) => [id, token]));
  return after.record.holds.every(({ id, token }) => known.get(id) === token || token > before.record.token);
}
