import type { AcquireRequest, Call, Grant } from '@locks/core/backend';
import type { Desk } from './desk.ts';
import type { Desks, Line } from './desks.ts';
import { Draft } from './draft.ts';
import { absent, type Hold, type LockState } from './lock-state.ts';
import { clientAliveMs } from './statements.ts';
import { isOvertaken, type Look, type Store, type TimeLimit } from './store.ts';

/** A waiter of this process, from the attempt that put it into the queue to its grant or its end. */
interface Waiter {
  readonly request: AcquireRequest;
  wait: Wait | undefined;
  /** When core was last heard of, on `performance.now()`. */
  lastHeardAt: number;
}

interface Wait {
  readonly call: Call;
  readonly end: (grant: Grant | undefined) => void;
}

const beatEveryMs = 1_400;
const shortestPollMs = 5;
const pollGrowth = 1.4;
const graceMs = 100;
const ownCallMs = 2_000;

/**
 * Those who wait in this process, and the one poller that looks at the store for all of them: quick after a change, slow when
 * nothing happens. A hand-off inside the process needs no look: the write that releases grants and delivers.
 */
export class WaitingLine implements Line {
  readonly #store: Store;
  readonly #desks: Desks;
  readonly #client: string;
  readonly #maxPollMs: number;
  readonly #waiters = new Map<string, Waiter>();
  readonly #byResource = new Map<string, Set<Waiter>>();
  /** Resources where the turn of another process's waiter was due at the last look. */
  readonly #overdue = new Set<string>();
  #waits = 0;
  #pollMs = shortestPollMs;
  #timer: NodeJS.Timeout | undefined;
  #dueAt = Infinity;
  #looking = false;
  /** When the next hold of a resource that is waited for ends by its time, on `performance.now()`. */
  #nextEndAt = Infinity;
  #beatAt = -Infinity;
  #beating: Promise<void> | undefined;
  #closed = false;

  constructor(store: Store, desks: Desks, client: string, maxPollMs: number) {
    this.#store = store;
    this.#desks = desks;
    this.#client = client;
    this.#maxPollMs = maxPollMs;
  }

  get hasBeaten(): boolean {
    return this.#beatAt > -Infinity;
  }

  isAwaited(acquisitionId: string): boolean {
    return this.#waiters.get(acquisitionId)?.wait !== undefined;
  }

  prepare(hold: Hold): () => void {
    const waiter = this.#waiters.get(hold.id);
    if (waiter === undefined) return () => undefined;
    const { wait } = waiter;
    // Just put into the queue, it did not wait when the lock was handed to it, so for the claim time only: it attempts
    // again, which claims it.
    if (wait === undefined || hold.unclaimedBy !== undefined) return () => waiter.wait?.end(undefined);
    // Not sent yet: the server starts the lease at a later moment (docs/spec.md §1.2).
    const countedFrom = wait.call.now();
    const grant = { request: waiter.request, fencingToken: BigInt(hold.token), countedFrom };
    return () => this.left(waiter.request, grant);
  }

  async beat(limit: TimeLimit): Promise<void> {
    if (performance.now() - this.#beatAt < beatEveryMs) return;
    this.#beating ??= this.#beat(limit).finally(() => {
      this.#beating = undefined;
    });
    await this.#beating;
  }

  looked(desk: Desk): void {
    if (this.#byResource.has(desk.resource) && desk.known !== undefined)
      this.#noteEnds(desk.known, desk.knownAt);
  }

  /** Takes note of a place in the queue, or of what may be one. */
  enqueued(request: AcquireRequest): void {
    this.#heardOf(request);
  }

  awaitTurn(request: AcquireRequest, call: Call): Promise<Grant | undefined> {
    return new Promise((resolve) => {
      const waiter = this.#heardOf(request);
      waiter.wait?.end(undefined);
      const { signal } = call;
      const end = (grant: Grant | undefined): void => {
        if (waiter.wait !== wait) return;
        waiter.wait = undefined;
        waiter.lastHeardAt = performance.now();
        this.#waits -= 1;
        signal?.removeEventListener('abort', onAbort);
        resolve(grant);
      };
      const onAbort = (): void => end(undefined);
      const wait: Wait = { call, end };
      waiter.wait = wait;
      this.#waits += 1;
      const { known } = this.#desks.get(request.resource) ?? {};
      // Handed over between the attempt and this call: another attempt gets it.
      const isHanded = known?.holds.some(({ id }) => id === request.acquisitionId);
      if (signal?.aborted || this.#closed || isHanded) return end(undefined);
      signal?.addEventListener('abort', onAbort);
      this.#timer?.ref();
      if (!this.#isHeldHere(request.resource)) this.#pollSoon();
    });
  }

  /** The acquisition neither waits nor will: it was granted or given up. */
  left(request: AcquireRequest, grant?: Grant): void {
    const waiter = this.#waiters.get(request.acquisitionId);
    if (waiter === undefined) return;
    this.#waiters.delete(request.acquisitionId);
    const neighbours = this.#byResource.get(request.resource);
    neighbours?.delete(waiter);
    if (neighbours?.size === 0) {
      this.#byResource.delete(request.resource);
      this.#overdue.delete(request.resource);
    }
    waiter.wait?.end(grant);
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
    for (const { request } of [...this.#waiters.values()]) this.left(request);
  }

  #heardOf(request: AcquireRequest): Waiter {
    let waiter = this.#waiters.get(request.acquisitionId);
    if (waiter === undefined) {
      waiter = { request, wait: undefined, lastHeardAt: 0 };
      this.#waiters.set(request.acquisitionId, waiter);
      const neighbours = this.#byResource.get(request.resource);
      if (neighbours === undefined) this.#byResource.set(request.resource, new Set([waiter]));
      else neighbours.add(waiter);
      if (this.#timer === undefined && !this.#looking) this.#schedule(this.#pollMs);
    }
    waiter.lastHeardAt = performance.now();
    return waiter;
  }

  /** What this process itself will release needs no look. */
  #isHeldHere(resource: string): boolean {
    const { known, own } = this.#desks.get(resource) ?? {};
    return known !== undefined && known.holds.length > 0 && known.holds.every(({ id }) => own?.has(id));
  }

  #pollSoon(): void {
    this.#pollMs = shortestPollMs;
    // Never later than planned: waiters that come one after another must not put the look off.
    if (!this.#looking && this.#dueAt > performance.now() + shortestPollMs) this.#schedule(shortestPollMs);
  }

  #schedule(delayMs: number): void {
    clearTimeout(this.#timer);
    if (this.#closed) return;
    this.#dueAt = performance.now() + delayMs;
    this.#timer = setTimeout(() => void this.#tick(), delayMs);
    // Only a waiting acquire keeps the process alive.
    if (this.#waits === 0) this.#timer.unref();
  }

  async #tick(): Promise<void> {
    this.#timer = undefined;
    if (this.#waiters.size === 0) return;
    this.#looking = true;
    try {
      this.#giveUpSilent();
      await this.beat(ownLimit());
      if (this.#waits > 0) await this.#look();
    } catch {
      // The attempts that follow these hints tell the waiters what is wrong with the store.
      for (const { wait } of this.#waiters.values()) wait?.end(undefined);
    } finally {
      this.#looking = false;
    }
    if (this.#waiters.size === 0) return;
    if (this.#waits === 0) return this.#schedule(beatEveryMs);
    // Up to a tenth more or less, so that processes do not look in step.
    const pauseMs = this.#pollMs * (0.9 + Math.random() / 5);
    this.#pollMs = Math.min(this.#maxPollMs, this.#pollMs * pollGrowth);
    const untilEndMs = Math.max(shortestPollMs, this.#nextEndAt - performance.now());
    this.#schedule(Math.min(pauseMs, untilEndMs));
  }

  /** One statement for all resources that are waited for here. */
  async #look(): Promise<void> {
    const desks = [...this.#byResource.keys()].flatMap((resource) => this.#desks.get(resource) ?? []);
    const names = [...this.#byResource.keys()];
    const known = desks.flatMap((desk) => desk.known?.version ?? []).filter((version) => version !== 0);
    const look = await this.#store.snapshot(names, known, ownLimit());
    this.#desks.learnAlive(look);
    this.#nextEndAt = Infinity;
    for (const resource of names) this.#lookAt(resource, look);
  }

  #lookAt(resource: string, look: Look): void {
    const desk = this.#desks.get(resource);
    if (desk === undefined) return this.#hintAll(resource);
    // A write is on its way: what was read here may be from before or after it. Or one has overtaken the look.
    if (desk.busy || isOvertaken(look, desk.knownAt, desk.usedAt)) {
      if (desk.known !== undefined) this.#noteEnds(desk.known, desk.knownAt);
      return;
    }
    const isAsKnown = look.states.has(resource) && look.states.get(resource) === undefined;
    if (!isAsKnown) {
      this.#pollMs = shortestPollMs;
      desk.learn(look.states.get(resource) ?? absent, look.now);
    } else if (desk.known !== undefined && look.now > desk.knownAt) {
      desk.learn(desk.known, look.now);
    }
    if (desk.known === undefined) return;
    this.#noteEnds(desk.known, look.now);
    this.#hint(desk, desk.known);
    this.#serve(desk, desk.known);
  }

  /** Wakes those who were handed the lock, and those who are in the queue no more. */
  #hint(desk: Desk, known: LockState): void {
    const queued = new Set(known.places.map(({ id }) => id));
    for (const { request, wait } of this.#byResource.get(desk.resource) ?? []) {
      if (!queued.has(request.acquisitionId)) wait?.end(undefined);
    }
    for (const { id, client } of known.places) {
      if (client === this.#client && !this.#waiters.has(id)) this.#abandon(desk.resource, id);
    }
  }

  /** A hold ran out, or somebody before us died, and nobody's release served the queue. */
  #serve(desk: Desk, known: LockState): void {
    const draft = desk.draft(this.#desks.moment, known);
    if (!draft.changed) return void this.#overdue.delete(desk.resource);
    const own = draft.holds.some(({ span, id }) => span !== undefined && this.#waiters.has(id));
    // First the process whose waiter it is; when it does not stir, whoever looks.
    if (!own && !this.#overdue.has(desk.resource)) {
      this.#overdue.add(desk.resource);
      this.#pollMs = Math.min(this.#pollMs, graceMs);
      return;
    }
    this.#overdue.delete(desk.resource);
    // The draft's own serving is all there is to do.
    this.#inBackground(desk.resource, () => undefined);
  }

  /** Core went away without a word, or a statement came in after its end: the entry must not block the queue. */
  #abandon(resource: string, acquisitionId: string): void {
    this.#inBackground(resource, (draft) => {
      // Core may have come back since.
      if (!this.#waiters.has(acquisitionId) && !this.#isAttempting(resource, acquisitionId))
        draft.clear(acquisitionId);
    });
  }

  #isAttempting(resource: string, acquisitionId: string): boolean {
    return this.#desks.get(resource)?.attempting.has(acquisitionId) ?? false;
  }

  #inBackground(resource: string, decide: (draft: Draft) => void): void {
    const { now, deadline } = ownLimit();
    this.#desks.submit(resource, { now, deadline }, decide).catch(() => this.#hintAll(resource));
  }

  #hintAll(resource: string): void {
    for (const { wait } of this.#byResource.get(resource) ?? []) wait?.end(undefined);
  }

  #giveUpSilent(): void {
    const before = performance.now() - clientAliveMs;
    for (const { wait, request, lastHeardAt } of [...this.#waiters.values()]) {
      if (wait !== undefined) {
        if (wait.call.now() >= wait.call.deadline) wait.end(undefined);
      } else if (lastHeardAt < before && !this.#isAttempting(request.resource, request.acquisitionId)) {
        this.left(request);
        this.#abandon(request.resource, request.acquisitionId);
      }
    }
  }

  #noteEnds({ holds }: LockState, serverNow: number): void {
    for (const { until } of holds) {
      if (until === undefined) continue;
      // The server's clock ticks on while its answer is on the way: looked at a little later rather than in vain.
      const endAt = performance.now() + Math.max(0, until - serverNow) / 1_000 + 1;
      this.#nextEndAt = Math.min(this.#nextEndAt, endAt);
    }
  }

  async #beat(limit: TimeLimit): Promise<void> {
    const startedAt = performance.now();
    await this.#store.write(this.#store.statements.beat(this.#client), limit);
    this.#beatAt = startedAt;
  }
}

function ownLimit(): TimeLimit {
  const now = (): number => performance.now();
  return { now, deadline: now() + ownCallMs };
}
