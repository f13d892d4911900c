import type {
  AcquireRequest,
  Attempt,
  Call,
  Grant,
  Holder,
  LockBackend,
  RenewItem,
  ResourceState,
  Standing,
} from '@locks/core';
import { memoryBackend, MemoryStore } from '@locks/memory';

/** How long the store keeps a session whose heart stopped. */
const SESSION_MS = 1_000;
const BEAT_MS = SESSION_MS / 10;
/** The client stops believing in its session this much before the store does. */
const MARGIN_MS = SESSION_MS / 10;
/** Nothing in this store ends by a ttl: one year. */
const FOREVER_MS = 31_536_000_000;

interface Session {
  expiresAt: number;
  /** What it holds or waits for, by acquisition id. */
  readonly requests: Map<string, AcquireRequest>;
}

/** The memory store with sessions: it forgets all that a session has when its heart stops for too long. */
export class SessionStore {
  readonly memory = new MemoryStore();
  readonly #sessions = new Set<Session>();
  #sweeper: NodeJS.Timeout | undefined;

  open(): Session {
    const session: Session = { expiresAt: performance.now() + SESSION_MS, requests: new Map() };
    this.#sessions.add(session);
    this.#sweeper ??= setInterval(() => this.#sweep(), BEAT_MS / 2).unref();
    return session;
  }

  has(session: Session): boolean {
    if (session.expiresAt <= performance.now()) this.end(session);
    return this.#sessions.has(session);
  }

  beat(session: Session): boolean {
    if (!this.has(session)) return false;
    session.expiresAt = performance.now() + SESSION_MS;
    return true;
  }

  end(session: Session): void {
    if (!this.#sessions.delete(session)) return;
    for (const { resource, acquisitionId } of session.requests.values())
      this.memory.forget(resource, acquisitionId);
  }

  #sweep(): void {
    for (const session of this.#sessions) this.has(session);
    if (this.#sessions.size > 0) return;
    clearInterval(this.#sweeper);
    this.#sweeper = undefined;
  }
}

const capabilities = {
  tenure: 'session',
  reach: 'process',
  modes: ['exclusive'],
  order: 'fifo',
  fencing: 'volatile',
  ttl: { minMs: 1, stepMs: 1 },
  features: ['waiters', 'force-release'],
} as const;

/** One client with a session of its own, kept alive by a heart that beats in this process. */
export class SessionBackend implements LockBackend<typeof capabilities> {
  readonly spec = 'locks-backend/1';
  readonly name = 'session-memory';
  readonly capabilities = { ...capabilities };
  readonly #store: SessionStore;
  readonly #memory: LockBackend;
  readonly #ended = new AbortController();
  readonly #sessionOfGrants = { validUntil: () => this.#validUntil };
  #session: Session | undefined;
  #heart: NodeJS.Timeout | undefined;
  /** On core's clock. */
  #validUntil = Number.NEGATIVE_INFINITY;

  constructor(store: SessionStore) {
    this.#store = store;
    this.#memory = memoryBackend(store.memory);
    ofCapabilities.set(this.capabilities, this);
  }

  async attempt(request: AcquireRequest, enqueue: boolean, call: Call): Promise<Attempt> {
    const session = this.#open(call);
    const forever = { ...request, ttlMs: FOREVER_MS };
    session.requests.set(request.acquisitionId, forever);
    const attempt = await this.#memory.attempt(forever, enqueue, call);
    if (attempt.status === 'granted')
      return { status: 'granted', grant: this.#inSession(attempt.grant, request) };
    if (!enqueue) session.requests.delete(request.acquisitionId);
    return attempt;
  }

  async awaitTurn(request: AcquireRequest, call: Call): Promise<Grant | undefined> {
    const grant = await this.#memory.awaitTurn?.(request, call);
    return grant && this.#inSession(grant, request);
  }

  async abandon(request: AcquireRequest, call: Call): Promise<void> {
    this.#session?.requests.delete(request.acquisitionId);
    await this.#memory.abandon(request, call);
  }

  renew(items: readonly RenewItem[], call: Call): Promise<readonly Standing[]> {
    return this.#memory.renew(
      items.map(({ grant }) => ({ grant, ttlMs: FOREVER_MS })),
      call,
    );
  }

  release(grant: Grant, call: Call): Promise<'released' | 'not-held' | 'unknown'> {
    this.#session?.requests.delete(grant.request.acquisitionId);
    return this.#memory.release(grant, call);
  }

  async inspect(resource: string, call: Call): Promise<ResourceState> {
    const state = await this.#memory.inspect(resource, call);
    const holders = state.holders.map((holder) => {
      const { expiresInMs: _, ...rest } = holder;
      return rest;
    });
    return { ...state, holders };
  }

  async forceRelease(
    resource: string,
    expectedId: string | undefined,
    call: Call,
  ): Promise<readonly Holder[]> {
    return (await this.#memory.forceRelease?.(resource, expectedId, call)) ?? [];
  }

  isRetryable(): boolean {
    return false;
  }

  async close(): Promise<void> {
    clearInterval(this.#heart);
    if (this.#session !== undefined) this.#store.end(this.#session);
  }

  /** The store ends the session, and its client hears of it. */
  endSession(): void {
    if (this.#session !== undefined) this.#store.end(this.#session);
    this.#lose();
  }

  #open(call: Call): Session {
    if (this.#session !== undefined) {
      if (!this.#store.has(this.#session)) throw new Error('the session ended');
      return this.#session;
    }
    const session = this.#store.open();
    this.#session = session;
    const beat = (): void => {
      // Counted from before sending, as a lease is.
      const sentAt = call.now();
      if (this.#store.beat(session)) this.#validUntil = sentAt + SESSION_MS - MARGIN_MS;
      else this.#lose();
    };
    beat();
    this.#heart = setInterval(beat, BEAT_MS).unref();
    return session;
  }

  #inSession(grant: Grant, request: AcquireRequest): Grant {
    return { ...grant, request, session: this.#sessionOfGrants, lost: this.#ended.signal };
  }

  #lose(): void {
    clearInterval(this.#heart);
    this.#validUntil = Number.NEGATIVE_INFINITY;
    this.#ended.abort({ reason: 'session-lost' });
  }
}

/** Whatever a case or a mutant puts around a backend, it passes on this very object. */
const ofCapabilities = new WeakMap<object, SessionBackend>();

/** For the harness. */
export async function endSession(backend: LockBackend): Promise<void> {
  const session = ofCapabilities.get(backend.capabilities);
  if (session === undefined) throw new Error('not a session backend');
  session.endSession();
}
