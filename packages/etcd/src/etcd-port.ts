import type { Call } from '@locks/core/backend';
import type {
  IDuplexStream,
  ILeaseKeepAliveRequest,
  ILeaseKeepAliveResponse,
  ITxnRequest,
  ITxnResponse,
  IWatchRequest,
  IWatchResponse,
  KVClient,
} from 'etcd3';
import type { ClientSource } from './options.ts';
import { isLeaseGone } from './retryable.ts';

type CallOptions = NonNullable<Parameters<KVClient['txn']>[1]>;
type Interceptor = NonNullable<CallOptions['interceptors']>[number];

export type KeepAliveDuplex = IDuplexStream<ILeaseKeepAliveRequest, ILeaseKeepAliveResponse>;
export type WatchDuplex = IDuplexStream<IWatchRequest, IWatchResponse>;

/** Counts how often a call was sent: clients repeat what failed, and the first sending may have arrived all the same. */
export class Sendings {
  count = 0;

  get repeated(): boolean {
    return this.count > 1;
  }
}

/**
 * A call of core's, or a time limit in milliseconds. Core itself stops waiting at its deadline. The call is not cut off
 * then: an answer that comes late is worth more than not to know.
 */
export type Limit = Call | number;

/** The calls that this package makes, each with its time limit. */
export class EtcdPort {
  readonly #source: ClientSource;
  readonly #callTimeoutMs: number;

  constructor(source: ClientSource, callTimeoutMs: number) {
    this.#source = source;
    this.#callTimeoutMs = callTimeoutMs;
  }

  async txn(request: ITxnRequest, limit: Limit, sendings?: Sendings): Promise<ITxnResponse> {
    return await this.#source.get().kv.txn(request, this.#options(limit, sendings));
  }

  async leaseGrant(ttlSeconds: number, limit: Limit): Promise<{ id: string; ttlSeconds: number }> {
    const granted = await this.#source
      .get()
      .leaseClient.leaseGrant({ TTL: ttlSeconds }, this.#options(limit));
    return { id: granted.ID, ttlSeconds: Number(granted.TTL) };
  }

  /** Afterwards the lease is no more, and no request that names it can write. */
  async leaseRevoke(id: string, limit: Limit): Promise<void> {
    try {
      await this.#source.get().leaseClient.leaseRevoke({ ID: id }, this.#options(limit));
    } catch (error) {
      if (!isLeaseGone(error)) throw error;
    }
  }

  /** The whole seconds that a lease has left, and those it was granted for; `undefined` when it is no more. */
  async leaseTimeToLive(id: string, limit: Limit): Promise<{ left: number; granted: number } | undefined> {
    const { TTL, grantedTTL } = await this.#source
      .get()
      .leaseClient.leaseTimeToLive({ ID: id }, this.#options(limit));
    return Number(TTL) < 0 ? undefined : { left: Number(TTL), granted: Number(grantedTTL) };
  }

  async keepAliveStream(): Promise<KeepAliveDuplex> {
    return await this.#source.get().leaseClient.leaseKeepAlive();
  }

  async watchStream(): Promise<WatchDuplex> {
    return await this.#source.get().watchClient.watch();
  }

  close(): void {
    this.#source.close();
  }

  #options(limit: Limit, sendings?: Sendings): CallOptions {
    const timeoutMs = typeof limit === 'number' ? limit : this.#callTimeoutMs;
    const limits = {
      // Read for each sending: a member that does not answer must not use up the time of the next.
      get deadline() {
        return Date.now() + timeoutMs;
      },
    };
    return sendings === undefined ? limits : Object.assign(limits, { interceptors: [counter(sendings)] });
  }
}

function counter(sendings: Sendings): Interceptor {
  return (options, nextCall) => {
    sendings.count += 1;
    return nextCall(options) as ReturnType<Interceptor>;
  };
}
