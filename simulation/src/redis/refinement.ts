import type { LockMode } from '@locks/core/backend';
import { LockRules, type WaiterRecord } from '@locks/core/rules';
import { type LockView, modeOf, viewOf } from './lock-view.ts';
import type { SimulatedRedis } from './simulated-redis.ts';

/** A call of a script, by the name of its file without `.lua`. */
export interface ScriptCall {
  readonly script: string;
  readonly keys: readonly string[];
  readonly args: readonly string[];
}

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

/** Decides a step by the rules. Returns whether the script serves the queue in it. */
type Step = (rules: LockRules) => boolean;

const NOBODY = '';

/** What one call may change: its locks with the keys of their tokens. */
function locksOf({ script, keys }: ScriptCall): readonly (readonly [lock: string, token: string])[] {
  const every = (step: number) =>
    keys.flatMap((key, at) => (at % step === 0 ? [[key, keys[at + 1] ?? ''] as const] : []));
  if (script === 'many') return every(4);
  if (script === 'check') return every(3);
  if (script === 'renew-shares') return every(2);
  if (script === 'renew' || script === 'claim') return every(1);
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
 * - A waiter that came twice is not compared: the next check, or the end of the claim time, puts that right.
 * - A check puts waiters of its process back to their positions, also beside holders of the other family, permits or not. A
 *   resize then goes by the holders, and is not compared.
 * - A steal of permits with a limit that a resize has changed is not compared: the rules serve waiters by their own limit, the
 *   scripts by that of the thief.
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
    for (const { lock, token, own, expected, before } of steps) {
      const view = this.#view(lock, token);
      if (before.repeated.size > 0 || stealsWithOtherLimit(call, before)) continue;
      const found = summary(view.record, (client) => this.#isAlive(view, client, own));
      const isOrdered = isGrantedAbove(view, before);
      if (isOrdered && JSON.stringify(found) === JSON.stringify(expected)) continue;
      throw new RefinementError(
        JSON.stringify(
          { call, lock, now: this.#now, before: before.record, expected, found, isOrdered },
          null,
          1,
        ),
      );
    }
    return reply;
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
      return [{ lock, token, own, before: view, expected: summary(rules, alive) }];
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
      const rules = new LockRules({ token, holds, waiters: left }, { client: notify });
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
    const holding = new Set(view.record.holds.map(({ id }) => id));
    const queued = new Map(view.record.waiters.map((waiter) => [waiter.id, waiter]));
    const positions = new Map(view.positions);
    for (const { waiter, position } of waiters) {
      if (holding.has(waiter.id)) queued.delete(waiter.id);
      else {
        // A waiter that moves to the channel of its process comes to the position that the check names.
        const stays = queued.get(waiter.id)?.client === now;
        positions.set(waiter.id, (stays ? positions.get(waiter.id) : undefined) ?? position);
        queued.set(waiter.id, { ...(queued.get(waiter.id) ?? resized(waiter, view)), client: now });
      }
    }
    const inOrder = [...queued.values()].sort(
      (a, b) => (positions.get(a.id) ?? 0) - (positions.get(b.id) ?? 0),
    );
    return { ...view, positions, record: { ...view.record, waiters: inOrder } };
  }
}

interface Expectation {
  readonly lock: string;
  readonly token: string;
  readonly own: string;
  readonly before: LockView;
  readonly expected: LockSummary;
}

/** What the rules do for one lock of a call; `undefined` if they say nothing about it. */
function stepOf(call: ScriptCall, index: number, view: LockView, isTaken: boolean): Step | undefined {
  const { script, args } = call;
  const [id = ''] = args;
  switch (script) {
    case 'acquire': {
      const [, ttl = '', label = '', enqueue = '', limit = '0', weight = '', steal] = args;
      const claim = Number(enqueue.split('|')[1] ?? ttl);
      const request = { id, label, mode: modeOfArguments(limit, weight), isStolen: steal !== undefined };
      return (rules) => attempt(rules, view, request, { ttl: Number(ttl), claim, enqueue: enqueue !== '' });
    }
    case 'many': {
      const [of = '', ttl = '', label = '', limit = '0', weight = ''] = args.slice(5 * index);
      const request = { id: of, label, mode: modeOfArguments(limit, weight), isStolen: false };
      return (rules) =>
        attempt(rules, view, request, { ttl: Number(ttl), claim: 0, enqueue: false, isOnlyServed: !isTaken });
    }
    case 'release':
      return (rules) => rules.holdOf(id) !== undefined && rules.release(id) !== undefined;
    case 'abandon':
      return (rules) => {
        // Of a waiter that its process does not know any more only the hold ends.
        const isQueued = rules.isQueued(id) && args.slice(2).some((member) => member.startsWith(`${id}|`));
        if (!isQueued && rules.holdOf(id) === undefined && !view.isShared) return false;
        if (isQueued) rules.abandon(id);
        else rules.release(id);
        return true;
      };
    case 'check':
      return (rules) => {
        const isWaiting = checkedBy(call, index).waiters.some(({ waiter }) => rules.isQueued(waiter.id));
        if (!isWaiting || rules.holds.some(({ mode }) => mode.kind === 'exclusive')) return false;
        rules.serve();
        return true;
      };
    case 'downgrade':
      return (rules) => {
        if (rules.holdOf(id)?.mode.kind !== 'exclusive') return false;
        rules.downgrade(id, 0);
        return true;
      };
    case 'resize':
      if (hasBothFamilies(view)) return undefined;
      return (rules) => {
        rules.resize(Number(id));
        return true;
      };
    case 'force-release':
      return (rules) => {
        const only = args[1];
        const isHeld = only === undefined ? rules.holds.length > 0 : rules.holdOf(only) !== undefined;
        if (isHeld) rules.forceRelease(only);
        return isHeld;
      };
    case 'renew':
    case 'claim':
    case 'renew-shares':
      return (rules) => {
        const [of = '', ttl = ''] = args.slice(2 * index);
        const isShare = rules.holdOf(of)?.mode.kind !== 'exclusive';
        if (script === 'renew-shares' || !isShare) rules.renew(of, 0, Number(ttl));
        return false;
      };
    default:
      return undefined;
  }
}

interface AttemptRequest {
  readonly id: string;
  readonly label: string;
  readonly mode: LockMode;
  readonly isStolen: boolean;
}

interface AttemptTimes {
  readonly ttl: number;
  readonly claim: number;
  readonly enqueue: boolean;
  readonly isOnlyServed?: boolean;
}

function attempt(rules: LockRules, view: LockView, request: AttemptRequest, times: AttemptTimes): boolean {
  const { id, label, mode, isStolen } = request;
  if (rules.holdOf(id) !== undefined) return false;
  const asked = { acquisitionId: id, label, mode };
  if (isStolen) {
    rules.attempt({ ...asked, steal: true }, times.ttl, false);
    return mode.kind !== 'exclusive';
  }
  const serves = rules.holds.length === 0 || view.mayHaveEnded;
  if (serves) rules.serve();
  if (times.isOnlyServed) return serves;
  const isGranted = rules.admits(mode);
  // Who waits keeps the ttl for which a hand-off lasts.
  rules.attempt(asked, isGranted ? times.ttl : Math.min(times.ttl, times.claim), times.enqueue);
  return serves;
}

function modeOfArguments(limit: string, weight: string): LockMode {
  return weight === '' ? { kind: 'exclusive' } : modeOf(weight === '0' ? 0 : Number(limit), Number(weight));
}

/** The `notify` of the process that calls: to it, its own waiters are alive. */
function callerOf({ script, args }: ScriptCall): string {
  switch (script) {
    case 'acquire':
      return args[3]?.split('|')[2] ?? NOBODY;
    case 'check':
      return args[0]?.split('|')[2] ?? NOBODY;
    case 'force-release':
      return args[0] ?? NOBODY;
    case 'release':
    case 'abandon':
    case 'downgrade':
    case 'resize':
      return args[1] ?? NOBODY;
    default:
      return NOBODY;
  }
}

function stealsWithOtherLimit({ script, args }: ScriptCall, { record }: LockView): boolean {
  if (script !== 'acquire' || args[6] === undefined) return false;
  return [...record.holds, ...record.waiters].some(
    ({ mode }) => mode.kind === 'permit' && mode.limit !== Number(args[4]),
  );
}

/** Permits beside other modes: waiters that were passed over came back by a check after others had taken the name. */
function hasBothFamilies({ record: { holds, waiters } }: LockView): boolean {
  const kinds = new Set([...holds, ...waiters].map(({ mode }) => mode.kind));
  return kinds.has('permit') && kinds.size > 1;
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

/** The waiters of one lock that a check names. */
function checkedBy({ args }: ScriptCall, index: number) {
  const notify = args[0]?.split('|')[2] ?? '';
  let at = 1;
  for (let skipped = 0; skipped < index; skipped++) at += 1 + 2 * Number(args[at]);
  const count = Number(args[at]);
  const waiters = Array.from({ length: count }, (_, each) => {
    const member = args[at + 1 + 2 * each] ?? '';
    const [position = '', limit = '0'] = (args[at + 2 + 2 * each] ?? '').split(':');
    const [id = '', time = '', , ...label] = member.split('|');
    const [px = '', weight = ''] = time.split(':');
    const mode = modeOfArguments(limit, weight);
    const waiter: WaiterRecord = {
      id,
      mode,
      label: label.join('|'),
      client: notify,
      ttl: Number(px),
      since: undefined,
    };
    return { waiter, position: Number(position) };
  });
  return { notify, waiters };
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
