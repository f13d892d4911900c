import type { AcquireRequest, Call } from '@locks/core/backend';
import { Desk, type Step } from './desk.ts';
import type { Draft, Moment } from './draft.ts';
import { absent, type Hold, type LockState } from './lock-state.ts';
import { isBroken, NoAnswerError } from './mysql-error.ts';
import { freshVersion } from './statements.ts';
import { isOvertaken, type Look, type Store, type TimeLimit } from './store.ts';

/** What the desks ask of those who wait in this process. */
export interface Line {
  isAwaited(acquisitionId: string): boolean;
  /** Before the write: counted from here if it succeeds. Gives what to do then. */
  prepare(hold: Hold): () => void;
  /** Before a place is written: its process must be known to live. */
  beat(limit: TimeLimit): Promise<void>;
  /** After every look at a resource. */
  looked(desk: Desk): void;
}

const mostTries = 200;
const longestPauseMs = 16;
const forgetAfterMs = 60_000;

/** All resources that this process uses now. Steps on one resource go one after another, those that come together as one. */
export class Desks {
  readonly #store: Store;
  readonly #client: string;
  readonly #desks = new Map<string, Desk>();
  #line: Line | undefined;
  /** Who was alive at the server's time `now`. */
  #lastHeard = { alive: new Set() as ReadonlySet<string>, now: 0, learnedAt: -Infinity };

  constructor(store: Store, client: string) {
    this.#store = store;
    this.#client = client;
  }

  serveLine(line: Line): void {
    this.#line = line;
  }

  learnAlive(look: Look): void {
    const { now, learnedAt } = this.#lastHeard;
    if (isOvertaken(look, now, learnedAt)) return;
    this.#lastHeard = { alive: look.alive, now: look.now, learnedAt: performance.now() };
  }

  get moment(): Omit<Moment, 'now'> {
    return {
      client: this.#client,
      isAlive: (client) => this.#lastHeard.alive.has(client),
      isAwaited: (id) => this.#line?.isAwaited(id) ?? false,
    };
  }

  get(resource: string): Desk | undefined {
    return this.#desks.get(resource);
  }

  /** `decide` may run several times, `settle` runs once with what it gave last. */
  submit<T>(
    resource: string,
    call: Call,
    decide: (draft: Draft, step: { readonly sentAt: number; readonly ambiguous: boolean }) => T,
    settle?: (result: T, desk: Desk) => void,
    take?: (sentAt: number) => Promise<{ readonly state: Desk['known']; readonly result: T } | undefined>,
    enqueues = false,
  ): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const desk = this.#open(resource);
      let result: T;
      const step: Step = {
        call,
        sentAt: call.now(),
        enqueues,
        take:
          take &&
          (async () => {
            const taken = await take(step.sentAt);
            if (taken !== undefined) result = taken.result;
            return taken?.state;
          }),
        decide: (draft, ambiguous) => {
          result = decide(draft, { sentAt: step.sentAt, ambiguous });
        },
        settle: () => {
          settle?.(result, desk);
          resolve(result);
        },
        fail: reject,
      };
      desk.pending.push(step);
      if (!desk.busy) void this.#work(desk);
    });
  }

  /** A resource was taken elsewhere in this process. */
  adopt({ resource, acquisitionId }: AcquireRequest, state: LockState): void {
    const desk = this.#open(resource);
    desk.own.add(acquisitionId);
    if (!desk.busy) desk.learn(state, 0);
  }

  /** The desk, if nothing goes on there; nothing will until `unlock`. */
  tryLock(resource: string): Desk | undefined {
    const desk = this.#open(resource);
    if (desk.busy) return undefined;
    desk.busy = true;
    return desk;
  }

  unlock(desk: Desk): void {
    desk.busy = false;
    if (desk.pending.length > 0) void this.#work(desk);
    else this.#closeIfIdle(desk);
  }

  /** Of a write that is about to be sent: what to do when it succeeds. */
  prepare(desk: Desk, draft: Draft, version: number): (at: number) => void {
    const deliveries = draft.handed.map((hold) => this.#line?.prepare(hold));
    return (at) => {
      desk.learn(draft.written(version, at), at);
      for (const deliver of deliveries) deliver?.();
    };
  }

  /** Leases that ended by their time are not given back by anybody: what was known of them is forgotten after a while. Gives how many are left. */
  forgetUnused(): number {
    const before = performance.now() - forgetAfterMs;
    for (const desk of this.#desks.values()) {
      if (
        desk.usedAt >= before ||
        desk.busy ||
        desk.known?.places.some(({ client }) => client === this.#client)
      )
        continue;
      this.#desks.delete(desk.resource);
    }
    return this.#desks.size;
  }

  #open(resource: string): Desk {
    let desk = this.#desks.get(resource);
    if (desk === undefined) {
      desk = new Desk(resource);
      this.#desks.set(resource, desk);
    }
    return desk;
  }

  #closeIfIdle(desk: Desk): void {
    desk.prune();
    if (desk.own.size === 0) this.#desks.delete(desk.resource);
  }

  async #work(desk: Desk): Promise<void> {
    desk.busy = true;
    while (desk.pending.length > 0) {
      const batch = desk.pending.splice(0);
      try {
        await this.#round(desk, batch);
        this.#line?.looked(desk);
      } catch (error) {
        desk.known = undefined;
        for (const step of batch) step.fail(error);
      }
    }
    desk.busy = false;
    this.#closeIfIdle(desk);
  }

  async #round(desk: Desk, batch: Step[]): Promise<void> {
    let mustRead = false;
    let refused = false;
    let broke = false;
    let ambiguous = false;
    for (let tries = 1; batch.length > 0; tries += 1) {
      if (tries > 1) await pauseBetween(tries, batch);
      const limit = limitOf(batch);
      try {
        if (desk.known === undefined && !refused) {
          refused = !(await takeOne(desk, batch));
          continue;
        }
        batch.push(...desk.pending.splice(0));
        for (const step of batch) step.sentAt = step.call.now();
        const fresh = mustRead || desk.known === undefined;
        if (fresh) {
          // A place is likely to be added: what that needs first goes along.
          const beaten = batch.some(({ enqueues }) => enqueues) ? this.#line?.beat(limit) : undefined;
          await Promise.all([this.#read(desk, limit), beaten]);
        }
        mustRead = true;
        const draft = desk.draft(this.moment);
        for (const step of batch) step.decide(draft, ambiguous);
        // What is known here may be old: only a write proves that it was not.
        if (!fresh && (draft.needsFresh || !draft.changed || !draft.isWhole)) continue;
        if (draft.changed) {
          if (draft.version === 0) {
            // The row went away after it was found taken: taken in one statement again.
            desk.known = undefined;
            refused = false;
            continue;
          }
          if (draft.enqueued) await this.#line?.beat(limit);
          const version = freshVersion();
          const written = this.prepare(desk, draft, version);
          ambiguous = true;
          const at = await this.#store.compareAndWrite({ name: desk.resource, draft, version }, limit);
          ambiguous = broke;
          if (at === undefined) continue;
          written(at);
        }
        for (const step of batch.splice(0)) step.settle();
      } catch (error) {
        // A connection that was closed while it lay in the pool, or that broke now. Every step may be repeated.
        if (broke || !isBroken(error) || error instanceof NoAnswerError) throw error;
        broke = true;
        refused = true;
        mustRead = true;
      }
    }
  }

  async #read(desk: Desk, limit: TimeLimit): Promise<void> {
    const { look, state } = await this.#store.state(desk.resource, limit);
    this.learnAlive(look);
    desk.learn(state ?? absent, look.now);
  }
}

/** Whether one step took the resource in one statement. */
async function takeOne(desk: Desk, batch: Step[]): Promise<boolean> {
  const index = batch.findIndex(({ take }) => take !== undefined);
  const step = batch[index];
  if (step?.take === undefined) return false;
  step.sentAt = step.call.now();
  const state = await step.take();
  if (state === undefined) return false;
  batch.splice(index, 1);
  desk.learn(state, 0);
  step.settle();
  return true;
}

/** Until the last of them gives up. */
function limitOf(batch: readonly Step[]): TimeLimit {
  const now = (): number => performance.now();
  const left = Math.max(...batch.map(({ call }) => call.deadline - call.now()));
  return { now, deadline: now() + left };
}

/** Others write to the same row: after a few tries at once, a random pause, so that each gets its turn. */
async function pauseBetween(tries: number, batch: readonly Step[]): Promise<void> {
  if (tries <= 4) return;
  const overdue = batch.every(({ call }) => call.now() >= call.deadline);
  if (overdue || tries > mostTries) {
    throw new NoAnswerError(`the row changed under each of ${tries - 1} tries`);
  }
  const pauseMs = Math.random() * Math.min(2 ** (tries - 4), longestPauseMs);
  await new Promise((resolve) => setTimeout(resolve, pauseMs));
}
