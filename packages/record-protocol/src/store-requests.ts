import { NoAnswerError, withTimeLimit } from '@locks/core/backend';
import { presentMoment } from './moment.ts';
import type { RecordsRead, RecordStore, RecordWrite, RecordWritten, RequestLimit } from './record-store.ts';
import type { StoreClock } from './store-clock.ts';
import type { TimeLimit } from './time-limit.ts';

/** A late answer is waited for: a grant that comes too late is noticed, and abandoned. */
const LATE_ANSWER_MS = 1_000;
const REQUEST_LIMIT_MS = 5_000;

const ENDS_AT_ONCE: RequestLimit = { timeoutMs: REQUEST_LIMIT_MS, signal: new AbortController().signal };

type Store = Pick<RecordStore, 'read' | 'write' | 'askTime' | 'connectionError' | 'isSynchronous'>;

/** The requests to a store, each with a limit of time. The clock learns the times that the answers tell. */
export class StoreRequests {
  readonly #store: Store;
  readonly #clock: StoreClock;
  /** What ends each request without an answer. */
  readonly #underWay = new Set<() => void>();

  constructor(store: Store, clock: StoreClock) {
    this.#store = store;
    this.#clock = clock;
  }

  read(keys: readonly string[], limit: TimeLimit): Promise<RecordsRead> {
    return this.#timed(limit, (request) => this.#store.read(keys, request));
  }

  write(write: RecordWrite, limit: TimeLimit): Promise<RecordWritten> {
    return this.#timed(limit, (request) => this.#store.write(write, request));
  }

  /** The store's time in milliseconds; `undefined` where the store cannot be asked for it, or tells none. */
  async askTime(limit: TimeLimit): Promise<number | undefined> {
    const { now } = await this.#timed<{ now: number | undefined }>(limit, async (request) => ({
      now: await this.#store.askTime?.(request),
    }));
    return now;
  }

  async #timed<T extends { readonly now?: number | undefined }>(
    limit: TimeLimit,
    send: (request: RequestLimit) => Promise<T>,
  ): Promise<T> {
    const askedAt = presentMoment();
    const answer = await this.#ask(limit, send);
    this.#clock.learn(answer.now, askedAt);
    return answer;
  }

  async #ask<T>(limit: TimeLimit, send: (request: RequestLimit) => Promise<T>): Promise<T> {
    if (this.#store.isSynchronous === true) return send(ENDS_AT_ONCE);
    const request = this.limitOf(limit);
    this.#underWay.add(request.abort);
    const sent = send(request).finally(() => this.#underWay.delete(request.abort));
    return withTimeLimit(sent, request.timeoutMs, () => {
      request.abort();
      throw new NoAnswerError(request.timeoutMs, this.#store.connectionError?.());
    });
  }

  limitOf(limit: TimeLimit): RequestLimit & { abort(): void } {
    const timeoutMs = Math.min(Math.max(limit.deadline - limit.now(), LATE_ANSWER_MS), REQUEST_LIMIT_MS);
    let controller: AbortController | undefined;
    return {
      timeoutMs,
      get signal() {
        return (controller ??= new AbortController()).signal;
      },
      abort: () => controller?.abort(),
    };
  }

  /** Aborts all requests under way: to a silent store they would keep the process alive. */
  abort(): void {
    for (const abort of this.#underWay) abort();
  }
}
