import type { AcquireRequest, Call, Grant, LockBackend, LockMode } from '@locks/core/backend';
import { type EtcdServer, startEtcd } from '@locks/test-servers';
import {
  Etcd3,
  type ILeaseKeepAliveRequest,
  type ILeaseKeepAliveResponse,
  type ITxnRequest,
  type ITxnResponse,
} from 'etcd3';
import { afterAll, beforeAll, expect, onTestFinished } from 'vitest';
import { type EtcdBackendOptions, type EtcdCapabilities, etcdBackend } from '../src/index.ts';

export type Backend = Required<LockBackend<EtcdCapabilities>>;

export const call: Call = { now: () => performance.now(), deadline: Number.POSITIVE_INFINITY };

export function callFor(ms: number): Call {
  return { now: () => performance.now(), deadline: performance.now() + ms, signal: AbortSignal.timeout(ms) };
}

/** Counts the requests of a client by method. */
export class Counted {
  readonly client: Etcd3;
  readonly counts: Record<string, number> = {};

  constructor(client: Etcd3) {
    this.client = client;
    const { kv, leaseClient } = client;
    for (const [owner, method] of [
      [kv, 'txn'],
      [kv, 'range'],
      [leaseClient, 'leaseGrant'],
      [leaseClient, 'leaseRevoke'],
    ] as const) {
      const send = (owner as unknown as Record<string, (...args: unknown[]) => unknown>)[method];
      Object.assign(owner, {
        [method]: (...args: unknown[]) => {
          this.counts[method] = (this.counts[method] ?? 0) + 1;
          return send?.apply(owner, args);
        },
      });
    }
  }

  take(): Record<string, number> {
    const counts = { ...this.counts };
    for (const method of Object.keys(this.counts)) delete this.counts[method];
    return counts;
  }
}

/** Starts one server for a test file. */
export function useEtcd(options?: { readonly electionTimeoutMs?: number }) {
  let server: EtcdServer | undefined;
  beforeAll(async () => {
    server = await startEtcd(options);
  });
  afterAll(async () => server?.stop());
  const hosts = (): string => (server as EtcdServer).url;
  return {
    hosts,
    client(): Etcd3 {
      const client = new Etcd3({ hosts: hosts() });
      onTestFinished(() => client.close());
      return client;
    },
    open(client?: Etcd3, backendOptions?: EtcdBackendOptions): Backend {
      const backend = etcdBackend(client ?? { hosts: hosts() }, backendOptions) as Backend;
      onTestFinished(() => backend.close());
      return backend;
    },
  };
}

/** A request that was sent and is held back before it arrives. */
export interface HeldBack {
  /** Resolves when the request is sent. */
  readonly sent: Promise<void>;
  /** Lets the request arrive. Its answer goes to the sender, unless `answer` is false: then the sender got an error at once. */
  deliver(): Promise<ITxnResponse>;
}

export function deferred<T>(): {
  readonly promise: Promise<T>;
  readonly resolve: (value: T | Promise<T>) => void;
} {
  let resolve: (value: T | Promise<T>) => void = () => {};
  const promise = new Promise<T>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}

/** Holds back the next transaction of a client that `matches`. */
export function holdBack(
  client: Etcd3,
  matches: (request: ITxnRequest) => boolean = () => true,
  { answer = true } = {},
): HeldBack {
  const { kv } = client;
  const send = kv.txn.bind(kv);
  const sent = deferred<void>();
  const arrival = deferred<void>();
  const answered = deferred<ITxnResponse>();
  kv.txn = async (request, options) => {
    if (!matches(request)) return await send(request, options);
    kv.txn = send;
    sent.resolve();
    const delivered = arrival.promise.then(async () => await send(request, options));
    answered.resolve(delivered);
    if (answer) return await answered.promise;
    delivered.catch(() => {});
    throw Object.assign(new Error('14 UNAVAILABLE: lost'), { code: 14 });
  };
  return {
    sent: sent.promise,
    deliver: async () => {
      arrival.resolve();
      return await answered.promise;
    },
  };
}

/** Holds back the answer to the next transaction of a client that `matches`. */
export function holdBackAnswer(
  client: Etcd3,
  matches: (request: ITxnRequest) => boolean,
): { readonly answered: Promise<void>; readonly deliver: () => void } {
  const { kv } = client;
  const send = kv.txn.bind(kv);
  const answered = deferred<void>();
  const delivered = deferred<void>();
  kv.txn = async (request, options) => {
    if (!matches(request)) return await send(request, options);
    kv.txn = send;
    const answer = await send(request, options);
    answered.resolve();
    await delivered.promise;
    return answer;
  };
  return { answered: answered.promise, deliver: delivered.resolve };
}

/** Loses the answer to the next transaction that `matches`; after `between` the client sends it once more. */
export function sendTwice(
  client: Etcd3,
  matches: (request: ITxnRequest) => boolean,
  between: () => Promise<unknown> = async () => {},
): void {
  const { kv } = client;
  const send = kv.txn.bind(kv);
  kv.txn = async (request, options) => {
    if (!matches(request)) return await send(request, options);
    kv.txn = send;
    await send(request, options);
    await between();
    return await send(request, options);
  };
}

/** Intercepts the keep-alives of a client, from its next stream on. */
export function interceptKeepAlives(
  client: Etcd3,
  {
    write = (send) => send(),
    answered = (answer) => answer,
  }: {
    readonly write?: (send: () => void) => void;
    readonly answered?: (answer: ILeaseKeepAliveResponse) => ILeaseKeepAliveResponse;
  },
): void {
  const { leaseClient } = client;
  const open = leaseClient.leaseKeepAlive.bind(leaseClient);
  leaseClient.leaseKeepAlive = async (...args) => {
    const stream = await open(...args);
    const send = stream.write.bind(stream);
    const on = stream.on.bind(stream) as (event: string, listener: (data: never) => void) => unknown;
    return Object.assign(stream, {
      write: (sent: ILeaseKeepAliveRequest) => write(() => send(sent)),
      on: (event: string, listener: (data: ILeaseKeepAliveResponse) => void) =>
        on(event, event === 'data' ? (data: ILeaseKeepAliveResponse) => listener(answered(data)) : listener),
    });
  };
}

/** Matches transactions that would write the key of this acquisition as a hold. */
export function grants(wanted: AcquireRequest): (request: ITxnRequest) => boolean {
  const key = `/${wanted.acquisitionId}`;
  const puts = (request: ITxnRequest): boolean =>
    [...(request.success ?? []), ...(request.failure ?? [])].some(
      ({ request_put: put, request_txn: nested }) =>
        (put?.key?.toString().endsWith(key) && /^(?:re|rs|p\d+h)/.test(put.value?.toString() ?? '')) ||
        (nested !== undefined && puts(nested)),
    );
  return puts;
}

let requests = 0;

export function request(
  resource: string,
  mode: LockMode = { kind: 'exclusive' },
  ttlMs = 20_000,
): AcquireRequest {
  requests += 1;
  return { resource, acquisitionId: `id${requests}`, label: `label ${requests}`, mode, ttlMs };
}

export async function take(backend: Backend, wanted: AcquireRequest): Promise<Grant> {
  const attempt = await backend.attempt(wanted, false, call);
  if (attempt.status !== 'granted') return expect.fail(`it is ${attempt.status}`);
  return attempt.grant;
}

/** Attempts and waits as core does. */
export async function acquire(
  backend: Backend,
  wanted: AcquireRequest,
  limit = callFor(15_000),
): Promise<Grant> {
  for (;;) {
    const attempt = await backend.attempt(wanted, true, limit);
    if (attempt.status === 'granted') return attempt.grant;
    if (attempt.status === 'conflict') return expect.fail('it is a conflict');
    const grant = await backend.awaitTurn(wanted, limit);
    if (grant !== undefined) return grant;
    if (limit.now() > limit.deadline) return expect.fail('it waited in vain');
  }
}

let names = 0;

export function freshName(): string {
  names += 1;
  return `resource ${names}`;
}
