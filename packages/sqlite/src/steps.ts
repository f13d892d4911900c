import type {
  AcquireRequest,
  Attempt,
  Call,
  Conflict,
  Grant,
  Holder,
  LockMode,
  ResourceState,
  Standing,
} from '@locks/core/backend';
import type { Client } from './client.ts';
import { nameBytes, type Row, toHolder, toMode, tokenOf, toWaiter } from './columns.ts';
import { Holds, roomBeside } from './holds.ts';
import { Line, modeInLine } from './line.ts';
import type { LockFile } from './lock-file.ts';
import { contradict } from './room.ts';

/** What a poller wants to know of a resource. */
export interface Turn {
  /** Whose turn it is, in order, of whatever process. Undefined: nobody is in the line. */
  readonly ready: readonly string[] | undefined;
  /** Whether somebody stands in the line whose process has ended. */
  readonly hasEnded: boolean;
  /** When a hold ends, or the silence of a process, if nothing else happens. */
  readonly changesInMs: number;
  /** Differs when turns have changed. */
  readonly mark: string;
}

interface Waiting {
  readonly request: AcquireRequest;
  readonly call: Call;
}

/** What the file says to a request. */
type Answer =
  | { readonly status: 'held'; readonly hold: Row }
  | Fits
  | { readonly status: 'contended' }
  | Conflict;

interface Fits {
  readonly status: 'fits';
  /** In which it enters: what the line says where it waited, since a resize may have changed it. */
  readonly mode: LockMode;
  readonly from: 'outside' | 'line';
  readonly tidies: boolean;
  readonly robs?: true;
}

/** The steps of the protocol. Each runs inside a transaction that the caller has begun, at once and to its end. */
export class Steps {
  readonly #file: LockFile;
  readonly #holds: Holds;
  readonly #line: Line;

  constructor(file: LockFile, client: Client) {
    this.#file = file;
    this.#holds = new Holds(file);
    this.#line = new Line(file, client);
  }

  attempt(request: AcquireRequest, enqueue: boolean, call: Call): Attempt {
    const resource = nameBytes(request.resource);
    const countedFrom = call.now();
    const now = this.#file.clock.nowMicros();
    const answer = this.#ask(request, resource, now);
    switch (answer.status) {
      case 'held':
        return { status: 'granted', grant: this.#heldBefore(request, answer.hold, countedFrom, now) };
      case 'fits':
        return { status: 'granted', grant: this.#enter({ request, call }, resource, answer) };
      case 'contended':
        if (enqueue) this.#line.enqueue(request, resource, now);
        return answer;
      case 'conflict':
        return answer;
      default:
        return answer satisfies never;
    }
  }

  /** Looks at all first, then takes all: nothing happens in between, since this is one transaction. */
  attemptMany(requests: readonly AcquireRequest[], call: Call): readonly Grant[] | undefined {
    const countedFrom = call.now();
    const now = this.#file.clock.nowMicros();
    const entries: (() => Grant)[] = [];
    for (const request of requests) {
      const resource = nameBytes(request.resource);
      const answer = this.#ask(request, resource, now);
      if (answer.status === 'held') {
        entries.push(() => this.#heldBefore(request, answer.hold, countedFrom, now));
      } else if (answer.status === 'fits') {
        entries.push(() => this.#enter({ request, call }, resource, answer));
      } else {
        return undefined;
      }
    }
    return entries.map((enter) => enter());
  }

  #ask(request: AcquireRequest, resource: Uint8Array, now: number): Answer {
    const { acquisitionId, mode } = request;
    const { live, hasRemains: tidies } = this.#holds.use(resource, now);
    const hold = live && this.#holds.own(resource, acquisitionId, now, live);
    if (hold !== undefined) return { status: 'held', hold };
    const room = roomBeside(live);
    const turns = this.#line.turns(resource, now, room);
    const living = live?.mode ?? modeInLine(turns);
    // One that waits is never refused: a resize may have given it another limit than it asked for.
    if (living !== undefined && contradict(living, mode) && !this.#line.waits(acquisitionId, now)) {
      return { status: 'conflict', with: living };
    }
    if (request.steal) return { status: 'fits', mode, from: 'line', tidies, robs: true };
    const ready = turns.ready.find((row) => row.acquisition_id === acquisitionId);
    if (ready !== undefined) return { status: 'fits', mode: toMode(ready), from: 'line', tidies };
    const nobodyWaits = turns.ready.length === 0 && turns.blocked === undefined;
    // Never past a live line (docs/spec.md §7.4), whatever room is left.
    if (nobodyWaits && room.take(mode)) return { status: 'fits', mode, from: 'outside', tidies };
    return { status: 'contended' };
  }

  #enter({ request, call }: Waiting, resource: Uint8Array, { mode, from, tidies, robs }: Fits): Grant {
    if (robs) this.#holds.rob(resource, this.#file.clock.nowMicros());
    const grant = this.#holds.grant(request, resource, call, mode, tidies);
    if (from === 'line') this.#line.dequeue(request.acquisitionId);
    return grant;
  }

  #heldBefore(request: AcquireRequest, hold: Row, countedFrom: number, now: number): Grant {
    const validForMs = (Number(hold.expires_at) - now) / 1000;
    return { request, fencingToken: tokenOf(hold), countedFrom, validForMs };
  }

  /** Grants to all whose turn it is and of whom `find` says that they wait in this process. */
  handOver(resource: string, find: (acquisitionId: string) => Waiting | undefined): Grant[] {
    const bytes = nameBytes(resource);
    const now = this.#file.clock.nowMicros();
    const { live, hasRemains: tidies } = this.#holds.use(bytes, now);
    const { ready } = this.#line.turns(bytes, now, roomBeside(live));
    const grants: Grant[] = [];
    for (const row of ready) {
      const waiting = find(String(row.acquisition_id));
      if (waiting === undefined) continue;
      grants.push(this.#enter(waiting, bytes, { status: 'fits', mode: toMode(row), from: 'line', tidies }));
    }
    return grants;
  }

  abandon({ resource, acquisitionId }: AcquireRequest): void {
    this.#holds.drop(nameBytes(resource), acquisitionId);
    this.#line.dequeue(acquisitionId);
  }

  renew(grant: Grant, ttlMs: number): Standing {
    return this.#holds.renew(grant, ttlMs);
  }

  downgrade(grant: Grant): Standing {
    return this.#holds.downgrade(grant);
  }

  release(grant: Grant): 'released' | 'not-held' {
    return this.#holds.release(grant);
  }

  forceRelease(resource: string, expectedId: string | undefined): Holder[] {
    return this.#holds.forceRelease(resource, expectedId);
  }

  resize(resource: string, limit: number): { readonly status: 'set' } | Conflict {
    const bytes = nameBytes(resource);
    const now = this.#file.clock.nowMicros();
    const { live } = this.#holds.use(bytes, now);
    const living = live?.mode ?? modeInLine(this.#line.turns(bytes, now, roomBeside(live)));
    if (living !== undefined && living.kind !== 'permit') return { status: 'conflict', with: living };
    this.#holds.resize(bytes, limit);
    this.#line.resize(bytes, limit);
    return { status: 'set' };
  }

  inspect(resource: string): ResourceState {
    const { statements, clock } = this.#file;
    const bytes = nameBytes(resource);
    const now = clock.nowMicros();
    return {
      resource,
      holders: statements.holders.all(bytes, now).map((row) => toHolder(row, now)),
      waiters: statements.line.all(bytes, now).map((row) => toWaiter(row, now)),
    };
  }

  /** Names in byte order, at most `limit`, starting with `from` or after it. */
  resourcesAfter(from: Uint8Array, inclusive: boolean, limit: number): Uint8Array[] {
    const { statements, clock } = this.#file;
    return statements.resourcesAfter
      .all(from, inclusive ? 1 : 0, clock.nowMicros(), limit)
      .map((row) => row.resource as Uint8Array);
  }

  /** Reads only. */
  turn(resource: string): Turn {
    const bytes = nameBytes(resource);
    const now = this.#file.clock.nowMicros();
    const live = this.#holds.survey(bytes, now);
    const changesInMs = live === undefined ? Infinity : (live.endsAt - now) / 1000;
    if (live?.mode.kind === 'exclusive') {
      return { ready: [], hasEnded: false, changesInMs, mark: String(live.row.acquisition_id) };
    }
    const { ready, blocked } = this.#line.readTurns(bytes, now, roomBeside(live));
    const seen = blocked === undefined ? ready : [...ready, blocked];
    const silentIn = seen.map((row) => (Number(row.alive_until) - now) / 1000);
    return {
      ready: seen.length === 0 ? undefined : ready.map((row) => String(row.acquisition_id)),
      hasEnded: seen.some((row) => this.#line.hasEnded(row)),
      changesInMs: Math.min(changesInMs, ...silentIn),
      mark: `${live?.holders ?? 0} ${seen[0]?.acquisition_id}`,
    };
  }

  heartbeat(): Set<string> {
    return this.#line.heartbeat(this.#file.clock.nowMicros());
  }

  /** Clears what dead processes left. */
  sweep(): void {
    const now = this.#file.clock.nowMicros();
    this.#line.dropDead(now);
    this.#holds.sweep(now);
  }

  dequeue(acquisitionId: string): void {
    this.#line.dequeue(acquisitionId);
  }

  leave(): void {
    this.#line.leave();
  }
}
