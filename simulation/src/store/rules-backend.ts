import type { Holder, ResourceState } from '@locks/core';
import {
  type LockBackend,
  type AcquireRequest,
  type Attempt,
  type Call,
  type Conflict,
  type Grant,
  refuseAfterClose,
  type RenewalStatus,
  type RenewItem,
  TurnWait,
} from '@locks/core/backend';
import type { Attempted, HoldRecord } from '@locks/core/rules';
import { type Answer, ConnectionLost, type Link } from '../network/link.ts';
import type { SimulatedProcess } from '../process/simulated-process.ts';
import type { RulesStore } from './rules-store.ts';

/** How often a process asks for its waiters, which also shows that it lives, in milliseconds. */
export const BEAT_MS = 300;

const capabilities = {
  tenure: 'lease',
  renewal: 'any-client',
  reach: 'network',
  modes: ['exclusive', 'shared', 'permit'],
  order: 'fifo',
  fencing: 'durable',
  ttl: { minMs: 10, stepMs: 1 },
  features: ['waiters', 'force-release', 'steal', 'transfer', 'many'],
} as const;

interface WaiterEntry {
  readonly resource: string;
  readonly wait: TurnWait;
  /** The turn came while nobody waited for it. */
  hasTurn: boolean;
  /** The store has answered that it waits. */
  isQueued: boolean;
}

/** The client of a {@link RulesStore}, in one process: all that it knows came through the network. */
export class RulesBackend implements LockBackend<typeof capabilities> {
  readonly spec = 'locks-backend/1';
  readonly name = 'rules';
  readonly capabilities = capabilities;
  readonly #process: SimulatedProcess;
  readonly #link: Link;
  readonly #store: RulesStore;
  readonly #client: string;
  /** By acquisition id, from the first attempt that may wait to the grant or the abandon. */
  readonly #waiters = new Map<string, WaiterEntry>();
  /** Ids that were granted and not released: a message about their turn may be late. */
  readonly #granted = new Set<string>();
  #beats = false;

  constructor(process: SimulatedProcess, link: Link, store: RulesStore, client: string) {
    this.#process = process;
    this.#link = link;
    this.#store = store;
    this.#client = client;
    store.connect(client, (resource, id) =>
      link.push(
        () => `${id} has its turn`,
        () => this.#turnCame(resource, id),
      ),
    );
    refuseAfterClose(this);
  }

  async attempt(request: AcquireRequest, enqueue: boolean, call: Call): Promise<Attempt> {
    const countedFrom = call.now();
    const { acquisitionId: id, resource } = request;
    // Its turn may come before the answer.
    if (enqueue && !this.#waiters.has(id))
      this.#waiters.set(id, { resource, wait: new TurnWait(), hasTurn: false, isQueued: false });
    const { value } = await this.#ask(
      () => `attempt ${describe(request)}`,
      call,
      (store, client) => store.attempt(client, request, enqueue),
    );
    if (value.status === 'contended' && enqueue) {
      const waiter = this.#waiters.get(id);
      if (waiter !== undefined) waiter.isQueued = true;
      this.#beatSoon();
      return { status: 'contended' };
    }
    this.#waiters.delete(id);
    if (value.status !== 'granted') return value;
    this.#granted.add(id);
    return { status: 'granted', grant: grantOf(request, value, countedFrom) };
  }

  async attemptMany(requests: readonly AcquireRequest[], call: Call): Promise<readonly Grant[] | undefined> {
    const countedFrom = call.now();
    const { value } = await this.#ask(
      () => `attempt together ${requests.map(describe).join(' and ')}`,
      call,
      (store, client) => store.attemptMany(client, requests),
    );
    return value?.flatMap((attempted, index) => {
      const request = requests[index];
      if (request !== undefined) this.#granted.add(request.acquisitionId);
      return attempted.status === 'granted' && request ? [grantOf(request, attempted, countedFrom)] : [];
    });
  }

  awaitTurn({ acquisitionId: id }: AcquireRequest, call: Call): Promise<Grant | undefined> {
    const waiter = this.#waiters.get(id);
    if (waiter === undefined || waiter.hasTurn) {
      if (waiter !== undefined) waiter.hasTurn = false;
      return Promise.resolve(undefined);
    }
    return waiter.wait.begin(call);
  }

  async abandon(request: AcquireRequest, call: Call): Promise<void> {
    const { resource, acquisitionId: id } = request;
    this.#waiters.get(id)?.wait.end();
    this.#waiters.delete(id);
    this.#granted.delete(id);
    await this.#ask(
      () => `abandon ${describe(request)}`,
      call,
      (store, client) => store.abandon(client, resource, id),
    );
  }

  async renew(items: readonly RenewItem[], call: Call): Promise<readonly RenewalStatus[]> {
    const { value } = await this.#ask(
      () =>
        `renew ${items.map(({ grant, ttlMs }) => `${describe(grant.request)} for ${ttlMs} ms`).join(', ')}`,
      call,
      (store, client) =>
        items.map(({ grant: { request, fencingToken }, ttlMs }) =>
          store.renew(client, request.resource, request.acquisitionId, Number(fencingToken), ttlMs),
        ),
    );
    return value;
  }

  async release({ request }: Grant, call: Call): Promise<'released' | 'not-held' | 'unknown'> {
    const { value, resent } = await this.#ask(
      () => `release ${describe(request)}`,
      call,
      (store, client) => store.release(client, request.resource, request.acquisitionId),
    );
    this.#granted.delete(request.acquisitionId);
    if (value !== undefined) return 'released';
    return resent ? 'unknown' : 'not-held';
  }

  async downgrade({ request, fencingToken }: Grant, call: Call): Promise<RenewalStatus> {
    const { value } = await this.#ask(
      () => `downgrade ${describe(request)}`,
      call,
      (store, client) =>
        store.downgrade(client, request.resource, request.acquisitionId, Number(fencingToken)),
    );
    return value;
  }

  async resize(resource: string, limit: number, call: Call): Promise<{ readonly status: 'set' } | Conflict> {
    const { value } = await this.#ask(
      () => `resize ${resource} to ${limit}`,
      call,
      (store, client) => store.resize(client, resource, limit),
    );
    return value === undefined ? { status: 'set' } : { status: 'conflict', with: value };
  }

  async inspect(resource: string, call: Call): Promise<ResourceState> {
    const { value } = await this.#ask(
      () => `inspect ${resource}`,
      call,
      (store) => store.read(resource),
    );
    return {
      name: resource,
      holders: value.holds.map(toHolder),
      waiters: value.waiters.map(({ id, mode }) => ({ acquisitionId: id, mode })),
    };
  }

  async forceRelease(
    resource: string,
    expectedId: string | undefined,
    call: Call,
  ): Promise<readonly Holder[]> {
    const { value } = await this.#ask(
      () => `release ${resource} by force`,
      call,
      (store, client) => store.forceRelease(client, resource, expectedId),
    );
    return value.map(toHolder);
  }

  isRetryable(error: unknown): boolean {
    return error instanceof ConnectionLost;
  }

  close(): Promise<void> {
    for (const { wait } of this.#waiters.values()) wait.end();
    this.#waiters.clear();
    return Promise.resolve();
  }

  #ask<T>(
    what: () => string,
    call: Call,
    execute: (store: RulesStore, client: string) => T,
  ): Promise<Answer<T>> {
    const { clock, world } = this.#process;
    const giveUpAt = world.now + clock.trueTime(Math.max(0, call.deadline - call.now()));
    return this.#link.request(what, giveUpAt, () => execute(this.#store, this.#client));
  }

  #turnCame(resource: string, id: string): void {
    const waiter = this.#waiters.get(id);
    if (waiter === undefined) this.#abandonUnknown(resource, id);
    else if (!waiter.wait.end()) waiter.hasTurn = true;
  }

  /** Its abandon was lost, or came before its attempt: the store holds the resource for nobody. */
  #abandonUnknown(resource: string, id: string): void {
    if (this.#granted.has(id)) return;
    this.#link
      .request(
        () => `abandon ${resource} for ${id}, which nobody asks for`,
        this.#process.world.now + BEAT_MS,
        () => this.#store.abandon(this.#client, resource, id),
      )
      .catch(() => undefined); // The hold ends by its time.
  }

  #beatSoon(): void {
    if (this.#beats) return;
    this.#beats = true;
    this.#process.setTimeout(() => void this.#beat(), BEAT_MS);
  }

  /** A push may have been lost: the store is asked, as long as anybody waits. */
  async #beat(): Promise<void> {
    this.#beats = false;
    if (this.#waiters.size === 0) return;
    this.#beatSoon();
    const waiting = [...this.#waiters].flatMap(([id, { resource, isQueued }]) =>
      isQueued ? [[resource, id] as const] : [],
    );
    const { world } = this.#process;
    try {
      const { value } = await this.#link.request(
        () => `beat of ${waiting.length}`,
        world.now + BEAT_MS,
        () => this.#store.beat(this.#client, waiting),
      );
      waiting.forEach(([resource, id], index) => {
        if (value[index] !== 'queued') this.#turnCame(resource, id);
      });
    } catch (error) {
      // The next beat asks again.
      if (!this.isRetryable(error)) throw error;
    }
  }
}

function describe({ resource, label, mode }: AcquireRequest): string {
  const kind = mode.kind === 'permit' ? `${mode.weight} of ${mode.limit}` : mode.kind;
  return `${resource} (${kind}) for ${label}`;
}

function grantOf(
  request: AcquireRequest,
  { hold, left }: Extract<Attempted, { status: 'granted' }>,
  countedFrom: number,
): Grant {
  const grant = { request, fencingToken: BigInt(hold.token), countedFrom };
  return left === undefined ? grant : { ...grant, validForMs: left };
}

function toHolder({ id, mode, token, label }: HoldRecord): Holder {
  return {
    acquisitionId: id,
    mode,
    ...(label !== undefined && { label }),
    fencingToken: BigInt(token),
  };
}
