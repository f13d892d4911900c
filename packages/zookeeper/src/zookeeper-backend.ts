import type {
  AcquireRequest,
  Attempt,
  Call,
  Grant,
  Holder,
  LockBackend,
  LossReason,
  RenewItem,
  ResourceState,
  Standing,
} from '@locks/core';
import { capabilities, type ZooKeeperCapabilities } from './capabilities.ts';
import { hasCode } from './client-port.ts';
import type { Line } from './line.ts';
import type { ResolvedOptions } from './options.ts';
import { Parents } from './parents.ts';
import { Place } from './place.ts';
import { holderAt, stateOf } from './resource-state.ts';
import { expired, type Session } from './session.ts';
import { type ClientSource, Sessions } from './sessions.ts';

/** A hold that is over sooner never asks for the watch of its own node. */
const GUARD_AFTER_MS = 20;

export class ZooKeeperLockBackend implements LockBackend<ZooKeeperCapabilities> {
  readonly spec = 'locks-backend/1';
  readonly name: string;
  readonly capabilities = { ...capabilities };
  readonly #sessions: Sessions;
  readonly #parents: Parents;
  /** Granted, and not watched yet. */
  #unguarded: Place[] = [];
  #guard: NodeJS.Timeout | undefined;
  /** Attempts under way, by acquisition id. */
  readonly #attempting = new Map<string, { abandoned: boolean }>();

  constructor(name: string, source: ClientSource, { path, tidyMs, connectTimeoutMs }: ResolvedOptions) {
    this.name = name;
    this.#sessions = new Sessions(source, connectTimeoutMs);
    this.#parents = new Parents(path, tidyMs, () => this.#sessions.live);
  }

  async attempt(request: AcquireRequest, enqueue: boolean, call: Call): Promise<Attempt> {
    const attempting = { abandoned: false };
    this.#attempting.set(request.acquisitionId, attempting);
    try {
      return await this.#attempt(request, enqueue, call, attempting);
    } finally {
      this.#attempting.delete(request.acquisitionId);
    }
  }

  async #attempt(
    request: AcquireRequest,
    enqueue: boolean,
    call: Call,
    attempting: { readonly abandoned: boolean },
  ): Promise<Attempt> {
    for (;;) {
      const session = await this.#sessions.current(call);
      const place = await this.#placeOf(request, session);
      // Given up before there was a place in line to give up (docs/spec.md §2.2).
      if (attempting.abandoned && place.seat === undefined) {
        place.gone();
        return { status: 'contended' };
      }
      const countedFrom = call.now();
      const line = await place.lookUp();
      if (session.ended) throw expired();
      // Abandoned while it was under way, or deleted by an administrator.
      if (place.doomed) return { status: 'contended' };
      if (line === undefined) continue;
      const granted = await this.#judge(place, line, session, countedFrom);
      if (granted !== undefined) return { status: 'granted', grant: granted };
      if (place.seat === undefined) continue;
      if (!enqueue) await place.leave();
      return { status: 'contended' };
    }
  }

  async awaitTurn(request: AcquireRequest, call: Call): Promise<Grant | undefined> {
    const session = this.#sessions.live;
    const place = session?.places.get(request.acquisitionId);
    if (session === undefined || place === undefined) return undefined;
    // A token is needed only when the turn comes: it is asked for while there is time.
    const token = place.learnToken();
    token.catch(() => undefined);
    while (place.blocker !== undefined && !place.doomed) {
      const path = `${place.parent}/${place.blocker.name}`;
      const changed = await changeOf(session, path, call);
      // Told as a failure: until there is another session nothing is known of the resource.
      if (session.ended) throw expired();
      if (!changed || place.doomed) return undefined;
      const countedFrom = call.now();
      const line = await place.lookUp();
      if (line === undefined) return undefined;
      await token;
      const granted = await this.#judge(place, line, session, countedFrom);
      if (granted !== undefined) return granted;
    }
    return undefined;
  }

  async abandon(request: AcquireRequest): Promise<void> {
    const attempting = this.#attempting.get(request.acquisitionId);
    if (attempting !== undefined) attempting.abandoned = true;
    const place = this.#placeOfGrant(request);
    if (place === undefined) await this.#removeStranger(request);
    else await place.leave();
  }

  renew(items: readonly RenewItem[]): Promise<readonly Standing[]> {
    return Promise.all(items.map(({ grant }) => this.#standing(grant)));
  }

  async release({ request }: Grant): Promise<'released' | 'not-held' | 'unknown'> {
    const place = this.#placeOfGrant(request);
    if (place === undefined) return (await this.#removeStranger(request)) ? 'released' : 'not-held';
    if (await place.leave()) return 'released';
    return place.leftBefore ? 'unknown' : 'not-held';
  }

  async downgrade(grant: Grant): Promise<Standing> {
    const place = this.#placeOfGrant(grant.request);
    return (await place?.downgrade()) ? { status: 'held' } : lossOf(grant);
  }

  async inspect(resource: string, call: Call): Promise<ResourceState> {
    const session = await this.#sessions.current(call);
    return await stateOf(session, resource, this.#parents.pathOf(resource));
  }

  async *list(prefix: string, call: Call): AsyncGenerator<ResourceState> {
    const session = await this.#sessions.current(call);
    await session.barrier();
    for (const resource of await this.#parents.resources(session)) {
      if (!resource.startsWith(prefix)) continue;
      const state = await stateOf(session, resource, this.#parents.pathOf(resource));
      if (state.holders.length + state.waiters.length > 0) yield state;
    }
  }

  async forceRelease(
    resource: string,
    expectedId: string | undefined,
    call: Call,
  ): Promise<readonly Holder[]> {
    const session = await this.#sessions.current(call);
    const parent = this.#parents.pathOf(resource);
    const [, { holders }] = await Promise.all([session.barrier(), session.line(parent)]);
    const meant = holders.filter(
      ({ acquisitionId }) => expectedId === undefined || acquisitionId === expectedId,
    );
    const ended = await Promise.all(
      meant.map(async (seat) => {
        const [holder, removed] = await Promise.all([
          holderAt(session, parent, seat),
          session.remove(`${parent}/${seat.name}`),
        ]);
        return removed ? holder : undefined;
      }),
    );
    return ended.filter((holder) => holder !== undefined);
  }

  isRetryable(error: unknown): boolean {
    return hasCode(error, 'CONNECTION_LOSS', 'NOT_CONNECTED', 'SESSION_EXPIRED');
  }

  async close(): Promise<void> {
    clearTimeout(this.#guard);
    await this.#parents.close();
    await this.#sessions.close();
  }

  async #placeOf(request: AcquireRequest, session: Session): Promise<Place> {
    const { acquisitionId } = request;
    const known = session.places.get(acquisitionId);
    if (known !== undefined) return known;
    const parent = session.graves.get(acquisitionId);
    // It had a node before the session was taken for lost, and the session lived on.
    if (parent !== undefined) await session.bury(acquisitionId, parent);
    const place = new Place(request, session, this.#parents);
    session.places.set(acquisitionId, place);
    return place;
  }

  /** The grant, or `undefined` and the place knows what to wait for. */
  async #judge(place: Place, line: Line, session: Session, countedFrom: number): Promise<Grant | undefined> {
    const { seat } = place;
    if (seat === undefined) return undefined;
    const own = line.seats.find(({ name }) => name === seat.name);
    if (own === undefined) return undefined;
    place.blocker = line.blockerOf(own);
    if (place.blocker !== undefined) return undefined;
    const token = place.token ?? (await place.learnToken());
    if (token === undefined || place.doomed || session.ended) return undefined;
    place.granted = true;
    this.#guardLater(place);
    const { request, lost } = place;
    return { request, fencingToken: token, countedFrom, session: session.tenure, lost: lost.signal };
  }

  #placeOfGrant({ acquisitionId }: AcquireRequest): Place | undefined {
    return this.#sessions.live?.places.get(acquisitionId);
  }

  /** An id that this session does not know may still have a node, made by another. */
  async #removeStranger({ acquisitionId, resource }: AcquireRequest): Promise<boolean> {
    return (await this.#sessions.live?.bury(acquisitionId, this.#parents.pathOf(resource))) ?? false;
  }

  /** Known without a request: the session is probed, and the node is watched. */
  async #standing(grant: Grant): Promise<Standing> {
    const place = this.#placeOfGrant(grant.request);
    if (place === undefined) return lossOf(grant);
    try {
      if (!place.guarded) await place.guard();
    } catch (error) {
      return { status: 'unknown', error };
    }
    return place.lost.signal.aborted ? lossOf(grant) : { status: 'held' };
  }

  #guardLater(place: Place): void {
    this.#unguarded.push(place);
    this.#guard ??= setTimeout(() => {
      this.#guard = undefined;
      for (const granted of this.#unguarded.splice(0)) granted.guard().catch(() => undefined);
    }, GUARD_AFTER_MS).unref();
  }
}

function lossOf({ lost, session }: Grant): Standing {
  const expired = session !== undefined && session.validUntil() === Number.NEGATIVE_INFINITY;
  const told = lost?.reason as LossReason | undefined;
  return { status: 'lost', reason: told ?? (expired ? 'session-lost' : 'force-released') };
}

/** Whether the node changed, rather than the call ended. */
async function changeOf(session: Session, path: string, call: Call): Promise<boolean> {
  const { signal } = call;
  let change: (changed: boolean) => void = () => {};
  const settled = new Promise<boolean>((resolve) => (change = resolve));
  const changed = (): void => change(true);
  const stop = (): void => change(false);
  const left = Math.max(0, call.deadline - call.now());
  const limit = signal === undefined && Number.isFinite(left) ? setTimeout(stop, left) : undefined;
  signal?.addEventListener('abort', stop, { once: true });
  try {
    if (signal?.aborted) return false;
    if ((await session.watches.add(path, changed)) === undefined) return true;
    return await settled;
  } finally {
    clearTimeout(limit);
    signal?.removeEventListener('abort', stop);
    session.watches.drop(path, changed);
  }
}
