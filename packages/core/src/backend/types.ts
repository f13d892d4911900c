/**
 * What a store must do for `@locks/core`. Users never see these types: they hold core's `Lock` and `Lease`.
 * Core checks options, waits, renews, notices losses, re-enters and reports; a backend makes one atomic step at a time.
 */

/**
 * How an acquisition takes part in a resource (docs/spec.md §15). There is one queue for all modes, served strictly in
 * order: what cannot be granted at its head holds back everything behind it, so that neither readers nor writers starve.
 *
 * - `exclusive`: alone.
 * - `shared`: together with other `shared` ones of the same name.
 * - `permit`: together with other permits while their weights add up to `limit` at most. While anything lives on a
 *   resource, permits of another limit, and permits beside `exclusive` or `shared`, are a conflict.
 */
export type LockMode =
  | { readonly kind: 'exclusive' }
  | { readonly kind: 'shared' }
  | { readonly kind: 'permit'; readonly limit: number; readonly weight: number };

/**
 * Why a lease ended without its holder asking.
 *
 * - `expired`: its time ran out and nobody had tried to renew it (manual renewal, `maxHoldMs`, a stalled process).
 * - `unconfirmed`: its time ran out while renewals got no clear answer.
 * - `taken-over`: the store says that another acquisition holds the resource.
 * - `force-released`: the store no longer has it, before its time: `forceRelease`, a deleted key, lost data.
 * - `session-lost`: the client's session with the store ended.
 * - `closed`: the lock manager was closed while the lease was held.
 */
export type LossReason =
  | 'expired'
  | 'session-lost'
  | 'taken-over'
  | 'unconfirmed'
  | 'force-released'
  | 'closed';

/** Optional abilities. One that is not listed is refused by core with `LOCK_UNSUPPORTED`. */
export type BackendFeature = 'list' | 'waiters' | 'force-release' | 'steal' | 'many';

/** What a backend promises. The conformance suite holds it to every word, and asserts that what is absent is refused. */
export interface BackendCapabilities {
  /** What ends an abandoned hold: `lease`, the store's clock; `session`, the end of the client's session. */
  readonly tenure: 'lease' | 'session';
  /** Which clients share the store: those of one process, of one host, or of a network. */
  readonly reach: 'process' | 'host' | 'network';
  readonly modes: readonly LockMode['kind'][];
  /** `fifo`: first come, first served across all clients of the store. */
  readonly order: 'fifo' | 'none';
  /** `durable`: tokens keep rising after a killed store process. `volatile`: the backend's page says when they could go back. */
  readonly fencing: 'durable' | 'volatile' | 'none';
  /** The shortest ttl in milliseconds, and the step to which core rounds a ttl up. */
  readonly ttl: { readonly minMs: number; readonly stepMs: number };
  readonly features: readonly BackendFeature[];
}

export interface AcquireRequest {
  readonly resource: string;
  /** Fresh for every acquisition, 1 to 64 characters of `A-Z a-z 0-9 _ -`; never used again after it was given up. */
  readonly acquisitionId: string;
  /** Readable, for operators only: at most 256 UTF-8 bytes of well-formed Unicode without control characters. */
  readonly label?: string;
  readonly mode: LockMode;
  readonly ttlMs: number;
  /**
   * Feature `steal`: in one step end every hold of the resource and grant it to this request, ahead of the queue, which
   * keeps its order behind it. Never contended. The robbed learn `taken-over` at their next renewal, or by a push.
   */
  readonly steal?: true;
}

/** What core passes with every call. */
export interface Call {
  /** Core's clock in milliseconds: use it for `countedFrom`, never `Date.now()`. */
  now(): number;
  /** On the clock of `now`: core stops caring for the answer after it. May be `Infinity`. */
  readonly deadline: number;
  /** Aborts when core gives up on the call. Made when first read: do not touch it where it is not needed. */
  readonly signal?: AbortSignal;
}

export interface Grant {
  readonly request: AcquireRequest;
  /** Present exactly when `capabilities.fencing` is not `none`. */
  readonly fencingToken?: bigint;
  /** `now()` before the last request that was *sent* while still ungranted. The lease is counted from here. */
  readonly countedFrom: number;
  /** How long the store holds it, from `countedFrom`; default: the request's ttl. Core renews a shorter one in time. */
  readonly validForMs?: number;
  /** For tenure `session`: until when the session is known to live. A method, so that it is right after a stall. */
  readonly session?: { validUntil(): number };
  /** A loss that the store pushes. Its `reason` is a {@link LossReason}. */
  readonly lost?: AbortSignal;
}

export type Attempt =
  | { readonly status: 'granted'; readonly grant: Grant }
  /** `retryAfterMs`: when core should attempt again at the latest, hint or no hint. */
  | { readonly status: 'contended'; readonly retryAfterMs?: number }
  | Conflict;

/** The resource is in use in a way that waiting does not end: nothing was granted and nothing queued. */
export interface Conflict {
  readonly status: 'conflict';
  /** A mode that lives on the resource, and that the request contradicts. */
  readonly with: LockMode;
}

/** What the store says of one lease at a renewal. An exception in a renewal means *unknown* for all its items. */
export type Standing =
  | { readonly status: 'held'; readonly validForMs?: number }
  | { readonly status: 'lost'; readonly reason: LossReason }
  | { readonly status: 'unknown'; readonly error: unknown };

export interface Holder {
  readonly acquisitionId: string;
  readonly mode: LockMode;
  readonly label?: string;
  readonly fencingToken?: bigint;
  readonly heldForMs?: number;
  readonly expiresInMs?: number;
}

export interface Waiter {
  readonly acquisitionId: string;
  readonly mode: LockMode;
  readonly label?: string;
  readonly waitingForMs?: number;
}

export interface ResourceState {
  readonly resource: string;
  readonly holders: readonly Holder[];
  /** In the order in which they will be served, where the backend has the feature `waiters`; else empty. */
  readonly waiters: readonly Waiter[];
}

export interface RenewItem {
  readonly grant: Grant;
  readonly ttlMs: number;
}

/**
 * A store, seen by core. Building one does no I/O. Every method may reject: core asks {@link LockBackend.isRetryable}
 * and then repeats the call or reports `LOCK_BACKEND` with the error as its `cause`.
 */
export interface LockBackend<C extends BackendCapabilities = BackendCapabilities> {
  readonly spec: 'locks-backend/1';
  /** Short and stable, for messages and reports: `redis-ioredis`. */
  readonly name: string;
  readonly capabilities: C;

  /**
   * One atomic attempt, idempotent by acquisition id: repeated while the id holds, it gives the same grant and token;
   * repeated while it waits, it keeps its place.
   *
   * `enqueue` false: never leaves anything behind when contended, and never overtakes a live queue.
   * `enqueue` true, order `fifo`: leaves the id in the queue when contended.
   *
   * Order `none`: core asks again with a fresh id each time, and abandons one whose attempt failed.
   */
  attempt(request: AcquireRequest, enqueue: boolean, call: Call): Promise<Attempt>;

  /**
   * All or nothing, in one step (feature `many`): requests of different names. `undefined`: contended, and nothing was
   * taken. Like an `attempt` that does not enqueue: idempotent, leaves nothing behind, never overtakes a live queue.
   */
  attemptMany?(requests: readonly AcquireRequest[], call: Call): Promise<readonly Grant[] | undefined>;

  /**
   * Waits after a contended attempt. Resolves with `undefined` when another attempt is worth while (a hint), or with a
   * grant that the store handed over. Ends soon after `call.signal` aborts or `call.deadline` passes.
   */
  awaitTurn?(request: AcquireRequest, call: Call): Promise<Grant | undefined>;

  /** Afterwards the id neither holds nor waits, whichever it did, and a wake-up that it consumed is passed on. */
  abandon(request: AcquireRequest, call: Call): Promise<void>;

  /**
   * Pushes the ends of leases back, each to its own ttl from now, and answers in the order of the items.
   * Never recreates what is absent and never touches another's. Core sends many leases at once.
   */
  renew(items: readonly RenewItem[], call: Call): Promise<readonly Standing[]>;

  /**
   * Gives the resource back if this very acquisition holds it, and only then.
   * `unknown`: it is not held now, and an earlier sending of this same call may have released it (a resent command).
   */
  release(grant: Grant, call: Call): Promise<'released' | 'not-held' | 'unknown'>;

  /**
   * Turns an exclusive hold into a shared one in one step, with the same acquisition id, token and end, and serves the
   * `shared` waiters at the head of the queue (both modes declared). Idempotent: a hold that is shared already is `held`.
   * Afterwards `renew`, `release` and `abandon` work with the grant of before as well as with one of mode `shared`.
   */
  downgrade?(grant: Grant, call: Call): Promise<Standing>;

  /**
   * Sets the limit of the permits that live on a resource, and serves those who wait and fit now; a resource in no use
   * stays untouched (mode `permit` declared). A lower limit ends no hold: nothing is granted until the weights fit.
   */
  resize?(resource: string, limit: number, call: Call): Promise<{ readonly status: 'set' } | Conflict>;

  inspect(resource: string, call: Call): Promise<ResourceState>;

  /** Every resource that is held or waited for and whose name starts with `prefix` (feature `list`). */
  list?(prefix: string, call: Call): AsyncIterable<ResourceState>;

  /** Ends the holds of a resource, or only `expectedId`'s; waiters go on (feature `force-release`). Gives what it ended. */
  forceRelease?(resource: string, expectedId: string | undefined, call: Call): Promise<readonly Holder[]>;

  /** Whether the same call may succeed if repeated: a lost connection yes, a wrong password no. */
  isRetryable(error: unknown): boolean;

  /** Ends what the backend itself opened: subscriptions, timers, its own connections. Never a client it was given. */
  close(): Promise<void>;
}
