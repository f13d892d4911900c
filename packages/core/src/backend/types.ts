// One file: the contract between core and a backend is read as a whole by whoever writes a backend.
import type { Clock } from '../lifetime/clock.ts';

export type { Clock } from '../lifetime/clock.ts';

/**
 * The contract between `@locks/core` and a store. Users never see these types: they hold core's `Lock` and `Lease`.
 * Core checks options, waits, renews, notices losses, re-enters and reports; a backend makes one atomic step at a time.
 *
 * Guarantees of core to a backend, in every call:
 *
 * - Names, labels, ids and ttls are checked: a ttl is a multiple of `ttl.stepMs` and not below `ttl.minMs`. Modes and
 *   optional methods that are not declared are never asked for.
 * - An acquisition id belongs to one acquisition. Attempts of one id come one after the other, and none is sent after its
 *   abandon; an unanswered attempt may still reach the store later than the abandon.
 * - Other calls for one id may overlap: an abandon with an unanswered attempt or wait, a renewal with a release, the
 *   repetition of a release or an abandon with its earlier sending, a new wait with one that core gave up.
 * - Calls for different ids come in any order and at any number at once. Acquires of one manager on one resource are first
 *   attempted in the order in which they were called; nothing else is put in order.
 * - Core does not wait for a call that it gave up (at its deadline, an abort, the end of the manager). A late grant is
 *   abandoned; a late error is dropped.
 * - After `close` no method but `isRetryable` and `connectionError` is called. Calls that have no answer by then may reject.
 * - A method that throws, instead of rejecting, counts as one that rejects.
 *
 * A backend must, in every call: act in one atomic step that compares the acquisition id; measure leases by the store's clock;
 * end soon after the deadline or the signal, and fail where it got no answer: never report *granted*, *released* or *lost*
 * because of a time-out of its own.
 */

/**
 * How an acquisition takes part in a resource (docs/spec.md §15). There is one queue for all modes, served strictly in
 * order: a request at its head that cannot be granted holds back everything behind it, so that neither readers nor writers
 * starve.
 *
 * - `exclusive`: alone.
 * - `shared`: together with other `shared` ones of the same name.
 * - `permit`: together with other permits while their weights add up to `limit` at most. While a resource has holders or
 *   waiters, permits of another limit, and permits beside `exclusive` or `shared`, are a conflict.
 */
export type LockMode =
  | { readonly kind: 'exclusive' }
  | { readonly kind: 'shared' }
  | {
      readonly kind: 'permit';
      /** How many permits the resource has. */
      readonly limit: number;
      /** How many of them the acquisition takes. */
      readonly weight: number;
    };

/**
 * Why a lease was lost.
 *
 * - `expired`: its time was over without a renewal (manual renewal, `maxHoldMs`, a stalled process), or its `maxHoldMs` in a session.
 * - `unconfirmed`: its time was over while renewals got no clear answer.
 * - `taken-over`: another acquisition holds the lock, by the store's answer.
 * - `force-released`: the store no longer has it (`forceRelease`, a deleted key, lost data).
 * - `session-lost`: the client's session with the store ended.
 * - `closed`: the lock manager was closed.
 */
export type LossReason =
  | 'expired'
  | 'session-lost'
  | 'taken-over'
  | 'unconfirmed'
  | 'force-released'
  | 'closed';

/** An optional ability of a backend. Core refuses an absent one with `LOCK_UNSUPPORTED`. */
export type BackendFeature =
  | 'list'
  | 'waiters'
  | 'force-release'
  | 'steal'
  | 'transfer'
  | 'max-waiters'
  | 'many';

/** The promises of a backend. The conformance suite checks each, and that absent features are refused. */
export interface BackendCapabilities {
  /** How the lock of a crashed holder ends: `lease`, by its ttl; `session`, with the client's session. */
  readonly tenure: 'lease' | 'session';
  /**
   * How the hold of a dead holder ends, for tenure `lease`. `clock`, the default: for every client, also for one that has just come, by a
   * clock that all share, most often the store's; declared where the store has several, which may be apart. `observed`: for each client
   * once it has seen the hold without a renewal for its ttl. A client that lives or waits for less never outlives a dead holder; the message of
   * `LOCK_TIMEOUT` says so.
   */
  readonly expiry?: 'clock' | 'observed';
  /**
   * Who may renew a hold. `any-client`: also another instance of the backend, on a connection of its own, in another thread or process, by
   * a copy of the grant that has its fields `request`, `fencingToken`, `countedFrom` and `validForMs` alone (docs/spec.md §4.8).
   * `own-client`: only the instance that was granted; a renewal by another one leaves the hold as it is, and its answer says nothing.
   */
  readonly renewal?: 'any-client' | 'own-client';
  /** The clients that share the store: those of one process, one host, or a network. */
  readonly reach: 'process' | 'host' | 'network';
  /** The kinds of {@link LockMode} that can be acquired. */
  readonly modes: readonly LockMode['kind'][];
  /**
   * `fifo`: first come, first served across all clients of the store. `cohort`: a lease may also serve later acquisitions of the
   * process that took it, as `cohort` says.
   */
  readonly order: 'fifo' | 'cohort' | 'none';
  /**
   * The limits of order `cohort`: how many acquisitions of a process one lease serves at most, and for how many milliseconds
   * after its grant it is passed on.
   */
  readonly cohort?: { readonly turns: number; readonly withinMs: number };
  /** `durable`: tokens rise through a crash of the store. `volatile`: they may go back, as the backend's page says. */
  readonly fencing: 'durable' | 'volatile' | 'none';
  /**
   * The shortest ttl and the step to which core rounds a ttl up, in milliseconds; and how long after its ttl the lock of a dead holder may
   * still be refused, where its end is known less exactly.
   */
  readonly ttl: {
    readonly minMs: number;
    readonly stepMs: number;
    /** In milliseconds. @defaultValue 0 */
    readonly marginMs?: number;
  };
  /** The optional abilities that the backend has. */
  readonly features: readonly BackendFeature[];
}

/** The request of one acquisition, as core sends it to a backend. */
export interface AcquireRequest {
  /** The name of the lock: 1 to 512 UTF-8 bytes of well-formed Unicode. */
  readonly resource: string;
  /** An id of 1 to 64 characters of `A-Z a-z 0-9 _ -`, fresh for every acquisition; never used again after it was given up. */
  readonly acquisitionId: string;
  /** A readable name, for operators only: at most 256 UTF-8 bytes of well-formed Unicode without control characters. */
  readonly label?: string;
  /** How the acquisition takes part in the resource. */
  readonly mode: LockMode;
  /** How long the hold lasts at the store without a renewal, in milliseconds. */
  readonly ttlMs: number;
  /**
   * Feature `steal`: in one step end every hold of the resource and grant it to this request, ahead of the queue, which
   * keeps its order behind it. Never contended. The former holders learn `taken-over` at their next renewal, or by a push.
   */
  readonly steal?: true;
  /**
   * Feature `transfer`, mode `exclusive`: the id of another acquisition. A transfer and an adoption send it. In one step end its hold and grant it to this request,
   * ahead of the queue, which keeps its order behind it. Contended where that acquisition does not hold exclusively: then nothing
   * was granted and nothing queued. `enqueue` is false.
   */
  readonly adopts?: string;
  /**
   * Feature `max-waiters`: how many others may wait for the resource, in any mode, when this id is put into the queue. Where so many
   * wait already the attempt is answered with `full`, and leaves nothing behind. An id that waits is never refused.
   */
  readonly maxWaiters?: number;
}

/** The clock, the deadline and the abort signal of a call; core passes them with every call. */
export interface Call {
  /** Core's clock in milliseconds: use it for `countedFrom`, never `Date.now()`. */
  now(): number;
  /**
   * The time on the clock of `now` after which core ignores the answer. May be `Infinity`. It moves when the event loop stood still: a
   * backend reads it when it needs it. A backend that repeats something by itself, for example after a lost compare-and-swap, ends by
   * then and rejects.
   */
  readonly deadline: number;
  /**
   * Aborts when core gives up on the call: at its deadline, when the user aborts, and, for an acquire, at the end of the
   * manager. It undoes nothing: core sends an `abandon` where something may have been done. The end of the manager does not
   * abort releases and abandons. The signal is made when first read: do not read it where it is not needed.
   */
  readonly signal?: AbortSignal;
}

/** A hold that a backend gave. */
export interface Grant {
  /** The request that was granted. */
  readonly request: AcquireRequest;
  /** The fencing token, present exactly when `capabilities.fencing` is not `none`. */
  readonly fencingToken?: bigint;
  /** `now()` before the last request that was *sent* while still ungranted. The lease is counted from here. */
  readonly countedFrom: number;
  /**
   * How long the hold lasts from `countedFrom`, in milliseconds; default: the request's ttl. Core renews a shorter one in time.
   */
  readonly validForMs?: number;
  /**
   * The client's session, for tenure `session`. `validUntil` gives the time until which the session is known to live; it is a
   * method because after a stall that time may be earlier.
   */
  readonly session?: { validUntil(): number };
  /** Aborts when the store pushes a loss. The signal's `reason` is a {@link LossReason}. */
  readonly lost?: AbortSignal;
}

/** The outcome of one attempt. */
export type Attempt =
  | {
      readonly status: 'granted';
      /** The hold that was given. */
      readonly grant: Grant;
    }
  | {
      readonly status: 'contended';
      /** The longest time until core should attempt again, in milliseconds, hint or no hint. */
      readonly retryAfterMs?: number;
    }
  | {
      /** As many wait as the request's `maxWaiters`, or as the store has room for: nothing was granted and nothing queued. */
      readonly status: 'full';
      /** What the store says of its room, as a part of a sentence. @defaultValue the limit is that of the request */
      readonly because?: string;
    }
  | Conflict;

/** The resource is in use in a way that waiting does not end: nothing was granted and nothing queued. */
export interface Conflict {
  /** Tells a conflict from a grant. */
  readonly status: 'conflict';
  /** A mode that lives on the resource, and that the request contradicts. */
  readonly with: LockMode;
}

/** The store's answer for one lease at a renewal. An exception in a renewal means *unknown* for all its items. */
export type RenewalStatus =
  | {
      readonly status: 'held';
      /** How long the hold lasts at the store, in milliseconds; default: the ttl that was asked for. */
      readonly validForMs?: number;
    }
  | {
      readonly status: 'lost';
      /** Why the lease was lost. */
      readonly reason: LossReason;
    }
  | {
      readonly status: 'unknown';
      /** The error that kept the store from an answer. */
      readonly error: unknown;
    };

/** A holder of a lock. */
export interface Holder {
  /** The identity of the acquisition in the store. */
  readonly acquisitionId: string;
  /** The mode: alone, shared, or with permits. */
  readonly mode: LockMode;
  /** The option `label` of its acquire. */
  readonly label?: string;
  /** The fencing token of its lease, where the backend has tokens. As JSON it is a decimal string. */
  readonly fencingToken?: bigint;
  /** How long the acquisition has held, in whole milliseconds, where the store knows. */
  readonly heldForMs?: number;
  /** How long its lease lasts without a renewal, in milliseconds, where the store knows. */
  readonly expiresInMs?: number;
}

/** A waiter of a lock. */
export interface Waiter {
  /** The identity of the acquisition in the store. */
  readonly acquisitionId: string;
  /** The mode: alone, shared, or with permits. */
  readonly mode: LockMode;
  /** The option `label` of its acquire. */
  readonly label?: string;
  /** How long the acquisition has waited, in milliseconds, where the store knows. */
  readonly waitingForMs?: number;
}

/** The holders and waiters of a lock. */
export interface ResourceState {
  readonly name: string;
  /** The holders; empty when the lock is free. */
  readonly holders: readonly Holder[];
  /** The waiters in their order, where the backend has the feature `waiters`; else empty. */
  readonly waiters: readonly Waiter[];
}

/** The parts of a resource's state that core reads. */
export interface InspectOptions {
  /** `false`: core does not read the waiters of the answer; a queue of thousands need not be sent. */
  readonly waiters: boolean;
}

/** A hold to renew, and for how many milliseconds. */
export interface RenewItem {
  readonly grant: Grant;
  /** How long the hold is to last from now, in milliseconds. */
  readonly ttlMs: number;
}

/**
 * A store, seen by core. Building one does no I/O. Every method may reject: core asks {@link LockBackend.isRetryable}
 * and then repeats the call or reports `LOCK_BACKEND` with the error as its `cause`.
 */
export interface LockBackend<C extends BackendCapabilities = BackendCapabilities> {
  /** The version of this interface. */
  readonly spec: 'locks-backend/1';
  /** A short and stable name, for messages and reports: `redis-ioredis`. */
  readonly name: string;
  readonly capabilities: C;
  /** The clock of the locks, in place of core's own. Only for test doubles. */
  readonly clock?: Clock;
  /**
   * How long core repeats a release or an abandon without an answer, in milliseconds; 5 ms are added for each other one that
   * has no answer yet. A store that may take longer to answer under load needs more.
   * @defaultValue 1 000
   */
  readonly releaseBudgetMs?: number;

  /**
   * One atomic attempt, idempotent by acquisition id: repeated while the id holds, it gives the same grant and token, with
   * the time that is left as `validForMs`; repeated while the id waits, it keeps its position in the queue.
   *
   * `enqueue` false: never leaves anything behind when contended, and never overtakes a live queue.
   * `enqueue` true, order `fifo`: leaves the id in the queue when contended.
   *
   * Order `none`: core asks again with a fresh id each time, and abandons one whose attempt failed.
   */
  attempt(request: AcquireRequest, enqueue: boolean, call: Call): Promise<Attempt>;

  /**
   * Grants all requests or none, in one step (feature `many`). The requests have different names. Resolves with `undefined`
   * when contended; then nothing was taken. Like an `attempt` that does not enqueue, it is idempotent, leaves nothing behind,
   * and never overtakes a live queue.
   */
  attemptMany?(requests: readonly AcquireRequest[], call: Call): Promise<readonly Grant[] | undefined>;

  /**
   * Waits after a contended attempt. Resolves with `undefined` when another attempt may succeed (a hint), or with the grant of
   * a hand-off. Ends soon after `call.signal` aborts or `call.deadline` passes.
   *
   * Core calls it after a contended attempt that put this id in the queue, and again after a hint and one more attempt. Core
   * slows down hints that come too fast. The turn may have come before this call: then it resolves at once. A backend with
   * `retryAfterMs` may lose a hint.
   */
  awaitTurn?(request: AcquireRequest, call: Call): Promise<Grant | undefined>;

  /**
   * Makes the id neither hold nor wait, whichever it did, and passes on a wake-up that the id consumed. Does nothing for an id
   * that the store does not know. Core repeats a failed abandon until the ttl of the request is over.
   */
  abandon(request: AcquireRequest, call: Call): Promise<void>;

  /**
   * Moves the ends of leases, each to its own ttl from now, and answers in the order of the items. Never recreates an absent
   * lease and never touches another's. Core sends many leases at once, counts their new ends from
   * before the call, and may renew a lease again before an earlier renewal of it was answered.
   */
  renew(items: readonly RenewItem[], call: Call): Promise<readonly RenewalStatus[]>;

  /**
   * Releases the resource if this very acquisition holds it, and only then. `unknown`: it is not held now, and an earlier
   * sending of this same call may have released it (a resent command).
   */
  release(grant: Grant, call: Call): Promise<'released' | 'not-held' | 'unknown'>;

  /**
   * Turns an exclusive hold into a shared one in one step, with the same acquisition id, token and end, and serves the
   * `shared` waiters at the head of the queue (both modes declared). Idempotent: a hold that is shared already is `held`.
   * Afterwards `renew`, `release` and `abandon` accept the former grant as well as one of mode `shared`.
   */
  downgrade?(grant: Grant, call: Call): Promise<RenewalStatus>;

  /**
   * Sets the limit of a resource's permits, and serves waiters that fit now; a resource without holders and waiters stays
   * untouched (mode `permit` declared). A lower limit ends no hold: nothing is granted until the weights fit.
   */
  resize?(resource: string, limit: number, call: Call): Promise<{ readonly status: 'set' } | Conflict>;

  /**
   * Gives the holders and the waiters of a resource. For the message of a `LOCK_TIMEOUT` core reads only the holders; a backend
   * that ignores `options` is correct, and sends more than is read.
   */
  inspect(resource: string, call: Call, options?: InspectOptions): Promise<ResourceState>;

  /** Lists every resource that is held or waited for and whose name starts with `prefix` (feature `list`). */
  list?(prefix: string, call: Call): AsyncIterable<ResourceState>;

  /** Ends the holds of a resource, or only `expectedId`'s, and gives them; waiters go on (feature `force-release`). */
  forceRelease?(resource: string, expectedId: string | undefined, call: Call): Promise<readonly Holder[]>;

  /**
   * Makes, or migrates, what the store needs before the first lock, and what `once` and `coalesce` keep beside it: for `prepare()` of the
   * manager. Idempotent, also where several processes call it at once. `call.deadline` is `Infinity`, since a migration takes its time;
   * it ends soon after `call.signal` aborts. Without this method there is nothing to make.
   */
  prepare?(call: Call): Promise<void>;

  /**
   * Resolves when the store has answered, on the connection that the other calls use: the cheapest round trip to the store
   * itself. Without this method core inspects a resource.
   */
  ping?(call: Call): Promise<void>;

  /**
   * The last connection error, while the client knows that it has no connection; `undefined` otherwise. Core asks for it when a
   * call got no answer, and puts it into the message. A store whose nodes fail by themselves gives what is known for `request`,
   * which waits.
   */
  connectionError?(request?: AcquireRequest): unknown;

  /**
   * Whether the application has closed the client that the backend was given: no call can succeed any more. Core asks when a call
   * failed, and twice a second while somebody waits; it then ends waits, and rejects calls, with `LOCK_CLOSED`.
   */
  readonly isClientClosed?: (() => boolean) | undefined;

  /** Whether the same call may succeed if repeated: a lost connection yes, a wrong password no. */
  isRetryable(error: unknown): boolean;

  /**
   * Ends what the backend itself opened: subscriptions, timers, its own connections. Never a client that it was given. Core
   * calls it once, and then none of the other methods above; calls that are still under way may reject. Any other call after
   * it rejects with `LOCK_CLOSED`: `refuseAfterClose` of `@locks/core/backend` does that for a backend.
   */
  close(): Promise<void>;
}
