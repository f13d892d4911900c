import { Buffer } from 'node:buffer';
import type { Call } from '@locks/core/backend';
import type {
  IDuplexStream,
  ILeaseKeepAliveRequest,
  ILeaseKeepAliveResponse,
  IRequestOp,
  ITxnRequest,
  ITxnResponse,
  IWatchRequest,
  IWatchResponse,
  KVClient,
} from 'etcd3';
import type { EtcdClientSource } from './options.ts';
import { isClosedClient, isLeaseGone, isUnavailable } from './etcd-errors.ts';

type CallOptions = NonNullable<Parameters<KVClient['txn']>[1]>;
type Interceptor = NonNullable<CallOptions['interceptors']>[number];

export type KeepAliveDuplex = IDuplexStream<ILeaseKeepAliveRequest, ILeaseKeepAliveResponse>;
export type WatchDuplex = IDuplexStream<IWatchRequest, IWatchResponse>;

/** Counts how often a call was sent: clients repeat failed calls, and the first sending may have arrived all the same. */
export class SendCount {
  count = 0;

  get repeated(): boolean {
    return this.count > 1;
  }
}

/**
 * A call of core's, or a time limit in milliseconds. Core itself stops waiting at its deadline. The request is not
 * cancelled then: a late answer is better than none.
 */
export type AnswerLimit = Call | number;

/** The requests that this package sends, each with a time limit. */
export class EtcdPort {
  readonly #source: EtcdClientSource;
  readonly #requestTimeoutMs: number;
  /** The reason why the last request found no member to be sent to; `undefined` after an answered request. */
  #connectionError: Error | undefined;
  /** Whether the last request failed since the application has closed the client. */
  isClientClosed = false;

  constructor(source: EtcdClientSource, requestTimeoutMs: number) {
    this.#source = source;
    this.#requestTimeoutMs = requestTimeoutMs;
  }

  async txn(request: ITxnRequest, limit: AnswerLimit, sends?: SendCount): Promise<ITxnResponse> {
    return await this.#observed(this.#source.get().kv.txn(request, this.#options(limit, sends)));
  }

  /** Runs operations in one transaction, without a condition on all of them. */
  async run(operations: IRequestOp[], limit: AnswerLimit, sends?: SendCount): Promise<ITxnResponse> {
    return await this.txn({ compare: [], success: operations, failure: [] }, limit, sends);
  }

  /** Makes a linearizable read, which needs a majority of the members. */
  async ping(limit: AnswerLimit): Promise<void> {
    const request = { key: Buffer.from('locks'), count_only: true };
    await this.#observed(this.#source.get().kv.range(request, this.#options(limit)));
  }

  /** The value of a key, by a linearizable read; `undefined`: there is no such key. */
  async valueOf(key: Buffer, limit: AnswerLimit): Promise<Buffer | undefined> {
    const { kvs } = await this.#observed(this.#source.get().kv.range({ key }, this.#options(limit)));
    return kvs[0]?.value;
  }

  async leaseGrant(ttlSeconds: number, limit: AnswerLimit): Promise<{ id: string; ttlSeconds: number }> {
    const { leaseClient } = this.#source.get();
    const granted = await this.#observed(leaseClient.leaseGrant({ TTL: ttlSeconds }, this.#options(limit)));
    return { id: granted.ID, ttlSeconds: Number(granted.TTL) };
  }

  /** Ends a lease; afterwards no request that names it can write. */
  async leaseRevoke(id: string, limit: AnswerLimit): Promise<void> {
    try {
      await this.#source.get().leaseClient.leaseRevoke({ ID: id }, this.#options(limit));
    } catch (error) {
      if (!isLeaseGone(error)) throw error;
    }
  }

  /** Returns the seconds that a lease has left and the seconds it was granted for; `undefined` if the lease is gone. */
  async leaseTimeToLive(
    id: string,
    limit: AnswerLimit,
  ): Promise<{ left: number; granted: number } | undefined> {
    const { TTL, grantedTTL } = await this.#source
      .get()
      .leaseClient.leaseTimeToLive({ ID: id }, this.#options(limit));
    return Number(TTL) < 0 ? undefined : { left: Number(TTL), granted: Number(grantedTTL) };
  }

  get connectionError(): Error | undefined {
    return this.#connectionError;
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

  async #observed<T>(answer: Promise<T>): Promise<T> {
    try {
      const given = await answer;
      this.#connectionError = undefined;
      this.isClientClosed = false;
      return given;
    } catch (error) {
      this.#connectionError = isUnavailable(error) ? error : undefined;
      this.isClientClosed = isClosedClient(error);
      throw error;
    }
  }

  #options(limit: AnswerLimit, sends?: SendCount): CallOptions {
    const timeoutMs = typeof limit === 'number' ? limit : this.#requestTimeoutMs;
    const limits = {
      // A getter, since the client reads the deadline for each sending: a silent member must not use up the time of the next
      // one.
      get deadline() {
        return Date.now() + timeoutMs;
      },
    };
    return sends === undefined ? limits : Object.assign(limits, { interceptors: [counter(sends)] });
  }
}

function counter(sends: SendCount): Interceptor {
  return (options, nextCall) => {
    sends.count += 1;
    return nextCall(options) as ReturnType<Interceptor>;
  };
}

/**
 * Closes a stream. It is ended before it is cancelled, since the client treats the end of a writable stream as a host failure.
 */
export function hangUp(stream: { end(): void; cancel(): void }): void {
  stream.end();
  stream.cancel();
}
