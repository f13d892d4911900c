import type {
  AcquireRequest,
  Attempt,
  BackendCapabilities,
  Call,
  Grant,
  LockBackend,
  RenewItem,
  RenewalStatus,
} from '../src/backend/types.ts';

/** One call that core made: what it was, for which ids, and when on core's clock. */
export interface Sent {
  readonly method: 'attempt' | 'awaitTurn' | 'abandon' | 'renew' | 'release';
  readonly ids: readonly string[];
  readonly at: number;
  readonly ttlMs?: number;
}

export interface ScriptedBackend extends LockBackend {
  readonly sent: Sent[];
  /** The calls of one method. */
  of(method: Sent['method']): Sent[];
}

export const capabilities: BackendCapabilities = {
  tenure: 'lease',
  renewal: 'own-client',
  reach: 'process',
  modes: ['exclusive'],
  order: 'fifo',
  fencing: 'volatile',
  ttl: { minMs: 10, stepMs: 1 },
  features: [],
};

let tokens = 0n;

/** A grant as a well-behaved store gives it. */
export function grant(request: AcquireRequest, call: Call, more: Partial<Grant> = {}): Grant {
  tokens += 1n;
  return { request, fencingToken: tokens, countedFrom: call.now(), ...more };
}

export function granted(request: AcquireRequest, call: Call, more: Partial<Grant> = {}): Attempt {
  return { status: 'granted', grant: grant(request, call, more) };
}

export const contended: Attempt = { status: 'contended' };

export function held(items: readonly RenewItem[]): readonly RenewalStatus[] {
  return items.map(() => ({ status: 'held' }));
}

/**
 * A backend that answers as the test says and otherwise grants, renews and releases whatever it is asked. It writes down
 * what core sends.
 */
export function scriptedBackend(script: Partial<LockBackend> = {}): ScriptedBackend {
  const sent: Sent[] = [];
  const note = (
    method: Sent['method'],
    requests: readonly AcquireRequest[],
    call: Call,
    ttlMs?: number,
  ): void => {
    const ids = requests.map((request) => request.acquisitionId);
    sent.push({ method, ids, at: call.now(), ...(ttlMs === undefined ? undefined : { ttlMs }) });
  };
  const { awaitTurn } = script;
  const backend: ScriptedBackend = {
    spec: 'locks-backend/1',
    name: 'scripted',
    capabilities,
    inspect: (resource) => Promise.resolve({ name: resource, holders: [], waiters: [] }),
    isRetryable: () => true,
    close: () => Promise.resolve(),
    ...script,
    sent,
    of: (method) => sent.filter((one) => one.method === method),
    attempt(request, enqueue, call) {
      note('attempt', [request], call);
      return script.attempt?.(request, enqueue, call) ?? Promise.resolve(granted(request, call));
    },
    abandon(request, call) {
      note('abandon', [request], call);
      return script.abandon?.(request, call) ?? Promise.resolve();
    },
    renew(items, call) {
      note(
        'renew',
        items.map((item) => item.grant.request),
        call,
        items[0]?.ttlMs,
      );
      return script.renew?.(items, call) ?? Promise.resolve(held(items));
    },
    release(given, call) {
      note('release', [given.request], call);
      return script.release?.(given, call) ?? Promise.resolve('released');
    },
  };
  if (awaitTurn === undefined) return backend;
  return {
    ...backend,
    awaitTurn(request, call) {
      note('awaitTurn', [request], call);
      return awaitTurn(request, call);
    },
  };
}

/** A store that never answers. */
export function noAnswer<T>(): Promise<T> {
  return new Promise<T>(() => {});
}

/** An answer that the test gives when it likes. */
export function answerLater<T>(): {
  readonly answer: Promise<T>;
  readonly give: (value: T) => void;
  readonly fail: (error: unknown) => void;
} {
  let give: (value: T) => void = () => {};
  let fail: (error: unknown) => void = () => {};
  const answer = new Promise<T>((resolve, reject) => {
    give = resolve;
    fail = reject;
  });
  return { answer, give, fail };
}
