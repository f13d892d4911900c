import { channel } from 'node:diagnostics_channel';
import { shownId } from './acquire/acquisition-id.ts';
import type {
  AcquireRequest,
  BackendCapabilities,
  Grant,
  Holder,
  LockBackend,
  LockMode,
  LossReason,
  RenewItem,
} from './backend/types.ts';
import type { Clock } from './lifetime/clock.ts';

/** The manager that a {@link ProtocolEvent} belongs to: one object for each. */
export interface ProtocolClient {
  /** The `name` of the backend. */
  readonly backend: string;
  readonly capabilities: BackendCapabilities;
}

/** An acquisition in a {@link ProtocolEvent}. */
export interface ProtocolAcquisition {
  readonly name: string;
  /** The identity of the acquisition in the store, without the secret of a ticket. */
  readonly acquisitionId?: string | undefined;
  readonly mode?: LockMode | undefined;
  /** How long the store is asked to keep the hold, in milliseconds. */
  readonly ttlMs?: number | undefined;
  readonly fencingToken?: bigint | undefined;
  readonly steal?: true | undefined;
  /** The acquisition whose hold a transfer or an adoption takes. */
  readonly adopts?: string | undefined;
}

/** The answer of the store for one acquisition. */
export interface ProtocolOutcome {
  /** As in the contract of a backend. `failed`: the call failed. `none`: an answer without content, such as a hint. */
  readonly status: string;
  readonly reason?: LossReason | undefined;
  readonly fencingToken?: bigint | undefined;
  /** The time from which the hold counts, on the clock of `at`. */
  readonly countedFrom?: number | undefined;
  readonly validForMs?: number | undefined;
  /** The hold that a forced release ended. */
  readonly acquisitionId?: string | undefined;
}

/** The methods of a backend whose calls are events. */
export type ProtocolMethod =
  | 'attempt'
  | 'attemptMany'
  | 'awaitTurn'
  | 'abandon'
  | 'renew'
  | 'release'
  | 'downgrade'
  | 'resize'
  | 'forceRelease';

/** What happened, without the manager and the time. */
export type ProtocolStep =
  /** A call is sent to the store, or begins to wait. `call` is its number in the manager. */
  | {
      readonly step: 'call';
      readonly call: number;
      readonly method: ProtocolMethod;
      readonly acquisitions: readonly ProtocolAcquisition[];
      /** Whether an attempt leaves its id in the queue. */
      readonly enqueue?: boolean;
    }
  | { readonly step: 'answer'; readonly call: number; readonly outcomes: readonly ProtocolOutcome[] }
  /** The lease counts as held until `until`, unless its end is told before. */
  | {
      readonly step: 'believes';
      readonly acquisition: ProtocolAcquisition;
      readonly until: number;
      /** Whether core renews the lease by itself. */
      readonly renews: boolean;
    }
  /** The lease no longer counts as held. */
  | {
      readonly step: 'ends';
      readonly acquisition: ProtocolAcquisition;
      readonly why: LossReason | 'released' | 'transferred' | 'useless';
      readonly until: number;
    }
  /** An acquire ended without a lease, after it had sent something. */
  | { readonly step: 'gives-up'; readonly acquisition: ProtocolAcquisition }
  /** A re-entry of a lease begins or ends. `within` is the number of the entry around it, and 0 for the first. */
  | {
      readonly step: 'enters' | 'leaves';
      readonly acquisition: ProtocolAcquisition;
      readonly scope: number;
      readonly within: number;
    }
  /** The manager calls its backend no more. */
  | { readonly step: 'closes' };

/**
 * A message of the channel `locks:protocol`: a call of a backend, its answer, or what core believes of a lease. `at` is the clock of the
 * manager, in milliseconds from an arbitrary start (docs/spec.md §1.1).
 */
export type ProtocolEvent = ProtocolStep & { readonly client: ProtocolClient; readonly at: number };

const protocolChannel = channel('locks:protocol');

/** Tells of the protocol between one manager and its store. Callers build a step only where {@link Protocol.isHeard}. */
export class Protocol {
  readonly #backend: LockBackend;
  readonly #clock: Clock;
  #client: ProtocolClient | undefined;
  #toldCalls: Calls | undefined;
  #calls = 0;

  constructor(backend: LockBackend, clock: Clock) {
    this.#backend = backend;
    this.#clock = clock;
  }

  get isHeard(): boolean {
    return protocolChannel.hasSubscribers;
  }

  tell(step: ProtocolStep): void {
    const { name, capabilities } = this.#backend;
    const client = (this.#client ??= { backend: name, capabilities });
    protocolChannel.publish({ ...step, client, at: this.#clock.now() });
  }

  /** The calls of the backend, as they are while nobody listens. */
  get calls(): Calls {
    return protocolChannel.hasSubscribers ? (this.#toldCalls ??= this.#tellCalls()) : this.#backend;
  }

  #tellCalls(): Calls {
    const calls: Partial<Record<ProtocolMethod, AnyMethod>> = {};
    for (const method of METHODS)
      if (this.#backend[method] !== undefined) calls[method] = (...given) => this.#tellCall(method, given);
    return calls as Calls;
  }

  /** Makes a call. Its answer is told before core reads it, and so before what follows from it. */
  #tellCall(method: ProtocolMethod, given: readonly unknown[]): unknown {
    const call = (this.#calls += 1);
    const acquisitions = ACQUISITIONS[method](...(given as never[]));
    this.tell({
      step: 'call',
      call,
      method,
      acquisitions,
      ...(method === 'attempt' && { enqueue: given[1] === true }),
    });
    const answered = (answer: unknown): void =>
      this.tell({
        step: 'answer',
        call,
        outcomes: Array.isArray(answer) ? answer.map(outcomeOf) : [outcomeOf(answer)],
      });
    const failed = (): void => answered({ status: 'failed' });
    try {
      const answer = (this.#backend[method] as AnyMethod).apply(this.#backend, [...given]);
      void Promise.resolve(answer).then(answered, failed);
      return answer;
    } catch (error) {
      failed();
      throw error;
    }
  }
}

type Calls = Pick<LockBackend, ProtocolMethod>;
type AnyMethod = (...given: unknown[]) => unknown;

const ofRequest = (request: AcquireRequest) => [shown(request)];
const ofGrant = (grant: Grant) => [shownLease(grant)];

/** Whom a call concerns, by its arguments. */
const ACQUISITIONS: Readonly<Record<ProtocolMethod, (...given: never[]) => readonly ProtocolAcquisition[]>> =
  {
    attempt: ofRequest,
    attemptMany: (requests: readonly AcquireRequest[]) => requests.map((request) => shown(request)),
    awaitTurn: ofRequest,
    abandon: ofRequest,
    renew: (items: readonly RenewItem[]) =>
      items.map(({ grant, ttlMs }) => ({ ...shownLease(grant), ttlMs })),
    release: ofGrant,
    downgrade: ofGrant,
    resize: (name: string, limit: number) => [{ name, mode: { kind: 'permit', limit, weight: 1 } }],
    forceRelease: (name: string, id?: string) => [{ name, acquisitionId: id && shownId(id) }],
  };
const METHODS = Object.keys(ACQUISITIONS) as ProtocolMethod[];

/** The acquisition of a request. */
export function shown({
  resource,
  acquisitionId,
  mode,
  ttlMs,
  steal,
  adopts,
}: AcquireRequest): ProtocolAcquisition {
  // Whoever listens may read the ids, and must not be able to adopt by them (docs/spec.md §19.2).
  const id = shownId(acquisitionId);
  return { name: resource, acquisitionId: id, mode, ttlMs, steal, adopts: adopts && shownId(adopts) };
}

/** The acquisition of a granted lease, with its token. */
export function shownLease({ request, fencingToken }: Grant): ProtocolAcquisition {
  return { ...shown(request), fencingToken };
}

/** A backend that breaks its contract may answer with anything. */
function outcomeOf(answer: unknown): ProtocolOutcome {
  if (typeof answer !== 'object' || answer === null)
    return { status: String((answer as string | undefined) ?? 'none') };
  const given = answer as Partial<AnyAnswer>;
  const { status = 'granted', reason, grant = given } = given;
  const { acquisitionId } = grant;
  return {
    status,
    reason,
    fencingToken: grant.fencingToken ?? given.fencingToken,
    countedFrom: grant.countedFrom ?? given.countedFrom,
    validForMs: grant.validForMs ?? given.validForMs,
    acquisitionId: acquisitionId && shownId(acquisitionId),
  };
}

/** The properties of all answers that are told. */
interface AnyAnswer extends ProtocolOutcome {
  readonly grant: Grant & Partial<Holder>;
}
