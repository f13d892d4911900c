import type { AcquireRequest, LockMode, Standing } from '@locks/core/backend';
import type { Hold, LockState, Place } from './lock-state.ts';

/** How long a hold that was handed to another process waits for its word, if that process lives. */
export const claimMicros = 3_000_000;

/** What a decision is made from, besides the state itself. */
export interface Moment {
  /** The server's time when the state was read, or earlier. */
  readonly now: number;
  /** This backend object. */
  readonly client: string;
  isAlive(client: string): boolean;
  /** Whether somebody in this process waits for the id right now, and can be given its grant. */
  isAwaited(id: string): boolean;
}

export type Attempted =
  /** `left`: what remains of a hold of an earlier attempt, in microseconds from `Moment.now`. */
  | { readonly status: 'granted'; readonly hold: Hold; readonly left?: number }
  | { readonly status: 'contended'; readonly enqueued: boolean }
  | { readonly status: 'conflict'; readonly with: LockMode };

/**
 * The rules of the lock, on a copy of one resource's state: pure, nothing here knows of the store. The steps that come
 * together are applied one after another, and what comes out is written at once or not at all.
 */
export class Draft {
  readonly version: number;
  holds: Hold[];
  places: Place[];
  token: number;
  /** Whether anything must be written. */
  changed = false;
  /** Whether a place of this client was added. */
  enqueued = false;
  /** Whether a step's answer hangs on the time of the state, so that an older one will not do. */
  needsFresh = false;
  /** Granted to those of this process; `unclaimedBy` tells who does not wait yet. */
  readonly handed: Hold[] = [];
  /** No hold that was found alive may have ended when this is written. */
  readonly aliveUntil: number;
  /** Whether the state has a hold whose end is known to the row only. */
  readonly standsOnRow: boolean;
  readonly #moment: Moment;
  readonly #expired = new Set<string>();

  constructor(state: LockState, moment: Moment) {
    this.#moment = moment;
    this.version = state.version;
    this.token = state.token;
    this.holds = state.holds.filter((hold) => this.#lives(hold)).map((hold) => ({ ...hold }));
    this.places = state.places.filter(({ client }) => moment.isAlive(client)).map((place) => ({ ...place }));
    this.aliveUntil = this.holds.reduce((least, { until = Infinity }) => Math.min(least, until), Infinity);
    this.standsOnRow = !this.isWhole;
  }

  /** Whether it can be written: the end of each hold is known, or counts from the write. */
  get isWhole(): boolean {
    return this.holds.every(({ until, span }) => until !== undefined || span !== undefined);
  }

  /** The server's time that is decided with. */
  get now(): number {
    return this.#moment.now;
  }

  /** Whether the id holds or waits. */
  knows(id: string): boolean {
    return this.holds.some((hold) => hold.id === id) || this.places.some((place) => place.id === id);
  }

  /** Grants the head of the queue, and the next, for as long as they fit: nothing overtakes (docs/spec.md §15.2). */
  serve(): void {
    for (let head = this.places[0]; head !== undefined && this.#fits(head.mode); head = this.places[0]) {
      this.places.shift();
      const here = this.#moment.isAwaited(head.id);
      const span = here ? head.ttl : Math.min(head.ttl, claimMicros);
      const hold = this.#grant(head.id, head.mode, head.label, span, here ? undefined : head.client);
      if (head.client === this.#moment.client) this.handed.push(hold);
    }
  }

  attempt(request: AcquireRequest, enqueue: boolean): Attempted {
    const { acquisitionId: id, mode, label } = request;
    const span = micros(request.ttlMs);
    const held = this.#hold(id);
    if (held !== undefined) return this.#claim(held, span);
    const place = this.places.find((each) => each.id === id);
    if (request.steal === true) return { status: 'granted', hold: this.#steal(request, span) };
    const conflict = place === undefined ? this.#conflictWith(mode) : undefined;
    if (conflict !== undefined) return { status: 'conflict', with: conflict };
    if (place !== undefined) return { status: 'contended', enqueued: true };
    if (this.places.length === 0 && this.#fits(mode))
      return { status: 'granted', hold: this.#grant(id, mode, label, span) };
    if (enqueue) {
      const { client } = this.#moment;
      this.places.push({
        id,
        mode,
        client,
        ttl: span,
        since: undefined,
        ...(label !== undefined && { label }),
      });
      this.changed = true;
      this.enqueued = true;
    }
    return { status: 'contended', enqueued: enqueue };
  }

  /** Afterwards the id neither holds nor waits. */
  abandon(id: string): void {
    const waiting = this.places.length;
    this.places = this.places.filter((place) => place.id !== id);
    if (this.places.length < waiting) this.changed = true;
    this.#end(({ id: other }) => other === id);
    this.serve();
  }

  /** Likewise for whoever this process has forgotten, but never a hold that it may have been told of (docs/spec.md §11.1). */
  clear(id: string): void {
    const isUnclaimed = this.holds.some((hold) => hold.id === id && hold.unclaimedBy === this.#moment.client);
    if (isUnclaimed || this.places.some((place) => place.id === id)) this.abandon(id);
  }

  /** Only the id that holds frees. */
  release(id: string): boolean {
    const ended = this.#end((hold) => hold.id === id).length > 0;
    this.serve();
    return ended;
  }

  forceRelease(id: string | undefined): Hold[] {
    const ended = this.#end((hold) => id === undefined || hold.id === id);
    this.serve();
    return ended;
  }

  /** Never recreates what is absent. */
  renew(id: string, token: number, ttlMs: number): Standing {
    const hold = this.#hold(id);
    if (hold === undefined) return this.#lost(id, token);
    hold.span = micros(ttlMs);
    hold.until = undefined;
    delete hold.unclaimedBy;
    this.changed = true;
    return { status: 'held' };
  }

  downgrade(id: string, token: number): Standing {
    const hold = this.#hold(id);
    if (hold === undefined) return this.#lost(id, token);
    if (hold.mode.kind === 'exclusive') {
      hold.mode = { kind: 'shared' };
      this.changed = true;
      this.serve();
    }
    return { status: 'held' };
  }

  /** Gives a mode that permits conflict with, if one lives here. */
  resize(limit: number): LockMode | undefined {
    const all = [...this.holds, ...this.places];
    const other = all.find(({ mode }) => mode.kind !== 'permit');
    if (other !== undefined) return other.mode;
    for (const entry of all) {
      if (entry.mode.kind !== 'permit' || entry.mode.limit === limit) continue;
      entry.mode = { ...entry.mode, limit };
      this.changed = true;
    }
    this.serve();
    return undefined;
  }

  /** The state once it is written, at the server's time `at`. */
  written(version: number, at: number): LockState {
    for (const hold of this.holds) {
      hold.since ??= at;
      if (hold.span !== undefined) hold.until = at + hold.span;
      hold.span = undefined;
    }
    for (const place of this.places) place.since ??= at;
    return { version, token: this.token, holds: this.holds, places: this.places };
  }

  #lives(hold: Hold): boolean {
    if (hold.until !== undefined && hold.until <= this.#moment.now) {
      this.#expired.add(hold.id);
      return false;
    }
    return hold.unclaimedBy === undefined || this.#moment.isAlive(hold.unclaimedBy);
  }

  #hold(id: string): Hold | undefined {
    return this.holds.find((hold) => hold.id === id);
  }

  /** A hold of this very id: what was handed over begins now, what is held goes on. */
  #claim(hold: Hold, span: number): Attempted {
    if (hold.unclaimedBy === undefined) {
      if (hold.span !== undefined) return { status: 'granted', hold };
      this.needsFresh = true;
      return { status: 'granted', hold, left: (hold.until ?? this.#moment.now) - this.#moment.now };
    }
    delete hold.unclaimedBy;
    hold.span = span;
    hold.until = undefined;
    this.changed = true;
    return { status: 'granted', hold };
  }

  #steal({ acquisitionId: id, mode, label }: AcquireRequest, span: number): Hold {
    this.places = this.places.filter((place) => place.id !== id);
    this.holds = [];
    return this.#grant(id, mode, label, span, undefined, true);
  }

  #grant(
    id: string,
    mode: LockMode,
    label: string | undefined,
    span: number,
    unclaimedBy?: string,
    thief = false,
  ): Hold {
    // Every grant has a higher token than all before it (docs/spec.md §15.8).
    this.token += 1;
    const hold: Hold = {
      id,
      mode,
      token: this.token,
      since: undefined,
      until: undefined,
      span,
      ...(label !== undefined && { label }),
      ...(unclaimedBy !== undefined && { unclaimedBy }),
      ...(thief && { thief }),
    };
    this.holds.push(hold);
    this.changed = true;
    return hold;
  }

  #end(which: (hold: Hold) => boolean): Hold[] {
    const ended = this.holds.filter(which);
    if (ended.length === 0) return ended;
    this.holds = this.holds.filter((hold) => !which(hold));
    this.changed = true;
    return ended;
  }

  #lost(id: string, token: number): Standing {
    const robbed = this.holds.some((hold) => hold.thief === true && hold.token > token);
    const shut = this.holds.some(({ mode }) => mode.kind === 'exclusive');
    if (robbed || shut) return { status: 'lost', reason: 'taken-over' };
    return { status: 'lost', reason: this.#expired.has(id) ? 'expired' : 'force-released' };
  }

  #fits(mode: LockMode): boolean {
    switch (mode.kind) {
      case 'exclusive':
        return this.holds.length === 0;
      case 'shared':
        return this.holds.every((hold) => hold.mode.kind === 'shared');
      case 'permit': {
        let taken = mode.weight;
        for (const hold of this.holds) {
          // A thief may hold in another mode.
          if (hold.mode.kind !== 'permit') return false;
          taken += hold.mode.weight;
        }
        return taken <= mode.limit;
      }
      default:
        return mode satisfies never;
    }
  }

  /** A mode that lives here and that `mode` contradicts (docs/spec.md §15.7). */
  #conflictWith(mode: LockMode): LockMode | undefined {
    const lives = (this.holds[0] ?? this.places[0])?.mode;
    if (lives === undefined || (lives.kind !== 'permit' && mode.kind !== 'permit')) return undefined;
    const same = lives.kind === 'permit' && mode.kind === 'permit' && lives.limit === mode.limit;
    return same ? undefined : lives;
  }
}

export function micros(ms: number): number {
  return Math.ceil(ms * 1_000);
}
