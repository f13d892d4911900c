import type {
  AcquireRequest,
  Attempt,
  BackendCapabilities,
  Call,
  Grant,
  Holder,
  LockBackend,
  RenewItem,
  ResourceState,
  Standing,
} from '@locks/core';

/** How long the store keeps a session whose heart stopped. */
const SESSION_MS = 1_000;
const BEAT_MS = SESSION_MS / 5;
/** The client stops believing in its session this much before the store does. */
const MARGIN_MS = SESSION_MS / 10;

/**
 * A backend with leases as one with sessions: what a client holds lives for as long as its heart beats, and all of it ends
 * when that stops for too long. Each backend has a session of its own.
 */
export class SessionBackend implements LockBackend {
  readonly spec = 'locks-backend/1';
  readonly name: string;
  readonly capabilities: BackendCapabilities;
  /** How long the store keeps what it holds after a beat. A mutant's store keeps it for longer. */
  keptForMs = SESSION_MS;
  readonly #store: LockBackend;
  readonly #ended = new AbortController();
  readonly #sessionOfGrants = { validUntil: () => this.#validUntil };
  /** As the store granted them, by acquisition id. */
  readonly #held = new Map<string, Grant>();
  readonly #waiting = new Map<string, AcquireRequest>();
  #opened: Promise<void> | undefined;
  #heart: NodeJS.Timeout | undefined;
  /** What the heart calls the store with: core's clock, and no deadline. */
  #call: Call = { now: () => performance.now(), deadline: Number.POSITIVE_INFINITY };
  /** On core's clock. */
  #validUntil = Number.NEGATIVE_INFINITY;

  constructor(store: LockBackend, name: string) {
    this.#store = store;
    this.name = name;
    this.capabilities = {
      ...store.capabilities,
      tenure: 'session',
      modes: ['exclusive'],
      features: ['waiters', 'force-release'],
    };
    ofCapabilities.set(this.capabilities, this);
  }

  async attempt(request: AcquireRequest, enqueue: boolean, call: Call): Promise<Attempt> {
    await this.#open(() => call.now());
    const asked = { ...request, ttlMs: this.keptForMs };
    if (enqueue) this.#waiting.set(request.acquisitionId, asked);
    const attempt = await this.#store.attempt(asked, enqueue, call);
    return attempt.status === 'granted'
      ? { status: 'granted', grant: this.#inSession(attempt.grant, request) }
      : attempt;
  }

  async awaitTurn(request: AcquireRequest, call: Call): Promise<Grant | undefined> {
    const asked = this.#waiting.get(request.acquisitionId) ?? request;
    const grant = await this.#store.awaitTurn?.(asked, call);
    if (grant === undefined) return undefined;
    const held = this.#inSession(grant, request);
    // The store keeps a hold that is handed over for no longer than its claim may take.
    await this.#beat();
    return this.#held.has(request.acquisitionId) ? held : undefined;
  }

  async abandon(request: AcquireRequest, call: Call): Promise<void> {
    this.#forget(request);
    await this.#store.abandon(request, call);
  }

  renew(items: readonly RenewItem[], call: Call): Promise<readonly Standing[]> {
    return this.#keep(
      items.map(({ grant }) => grant),
      call,
    );
  }

  release(grant: Grant, call: Call): Promise<'released' | 'not-held' | 'unknown'> {
    this.#forget(grant.request);
    return this.#store.release(grant, call);
  }

  async inspect(resource: string, call: Call): Promise<ResourceState> {
    const state = await this.#store.inspect(resource, call);
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
    return (await this.#store.forceRelease?.(resource, expectedId, call)) ?? [];
  }

  isRetryable(error: unknown): boolean {
    return this.#store.isRetryable(error);
  }

  async close(): Promise<void> {
    await this.#end();
    await this.#store.close();
  }

  /** The store ends the session, and its client hears of it. */
  async endSession(): Promise<void> {
    await this.#end();
    this.#lose();
  }

  async #open(now: Call['now']): Promise<void> {
    if (this.#ended.signal.aborted) throw new Error('the session ended');
    // Whoever comes while it is opened waits for it, too: before the first beat no grant is valid.
    await (this.#opened ??= this.#start(now));
  }

  async #start(now: Call['now']): Promise<void> {
    this.#call = { ...this.#call, now };
    this.#heart = setInterval(() => void this.#beat(), BEAT_MS).unref();
    await this.#beat();
  }

  async #beat(): Promise<void> {
    // Counted from before sending, as a lease is.
    const sentAt = this.#call.now();
    const tooLate = sentAt >= this.#validUntil + MARGIN_MS;
    const grants = [...this.#held.values()];
    const standings = await this.#keep(grants, this.#call).catch(() => undefined);
    if (standings === undefined) return;
    const lost = grants.filter(
      ({ request }, index) => standings[index]?.status === 'lost' && this.#held.delete(request.acquisitionId),
    );
    if (tooLate && lost.length > 0) this.#lose();
    else this.#validUntil = Math.max(this.#validUntil, sentAt + SESSION_MS - MARGIN_MS);
  }

  #keep(grants: readonly Grant[], call: Call): Promise<readonly Standing[]> {
    return this.#store.renew(
      grants.map((grant) => ({ grant, ttlMs: this.keptForMs })),
      call,
    );
  }

  #inSession(grant: Grant, request: AcquireRequest): Grant {
    this.#waiting.delete(request.acquisitionId);
    this.#held.set(request.acquisitionId, grant);
    return { ...grant, request, session: this.#sessionOfGrants, lost: this.#ended.signal };
  }

  #forget({ acquisitionId }: AcquireRequest): void {
    this.#held.delete(acquisitionId);
    this.#waiting.delete(acquisitionId);
  }

  /** The store forgets all that the session has. */
  async #end(): Promise<void> {
    clearInterval(this.#heart);
    const [held, waiting] = [[...this.#held.values()], [...this.#waiting.values()]];
    this.#held.clear();
    this.#waiting.clear();
    await Promise.all([
      ...held.map((grant) => this.#store.release(grant, this.#call)),
      ...waiting.map((request) => this.#store.abandon(request, this.#call)),
    ]);
  }

  #lose(): void {
    clearInterval(this.#heart);
    this.#validUntil = Number.NEGATIVE_INFINITY;
    this.#ended.abort({ reason: 'session-lost' });
  }
}

/** Whatever a case or a mutant puts around a backend, it passes on this very object. */
const ofCapabilities = new WeakMap<object, SessionBackend>();

/** The backend behind what was put around it. */
export function sessionBackendOf({ capabilities }: LockBackend): SessionBackend {
  const backend = ofCapabilities.get(capabilities);
  if (backend === undefined) throw new Error('not a session backend');
  return backend;
}
