import type {
  RecordChange,
  RecordClock,
  RecordPace,
  RecordsRead,
  RecordStore,
  RecordWrite,
  RecordWritten,
  RequestLimit,
  StoredRecord,
} from '@locks/record-protocol';
import { ConnectionLost, type Link } from '../network/link.ts';
import type { SimulatedProcess } from '../process/simulated-process.ts';
import { isAskedFor, type RecordPlan } from './record-plan.ts';
import { type RecordServer, ServerFailure, type Watcher } from './record-server.ts';

/** The caller needs the answer no more. The request may be carried out all the same, now or later. */
export class RequestAborted extends Error {
  override readonly name = 'AbortError';
}

export interface StoreInProcess {
  readonly process: SimulatedProcess;
  readonly link: Link;
  readonly server: RecordServer;
  readonly plan: RecordPlan;
  readonly maxPollMs: number;
  /** Called before each request is carried out at the server. */
  readonly carriedOut: (what: 'read' | 'write', key: string) => void;
}

const FIRST_PAUSE_MS = 10;
const SUBSCRIBES_AGAIN_MS = 100;

/** The store of records as one process has it: the user's client, which repeats requests by itself, and the network. */
export class SimulatedRecordStore implements RecordStore {
  readonly name = 'record';
  readonly maxValueBytes = 300_000;
  readonly pace: RecordPace;
  readonly clock: RecordClock;
  readonly askTime?: (limit: RequestLimit) => Promise<number | undefined>;
  readonly watch?: RecordStore['watch'];
  readonly tellsWhom: boolean;
  readonly list?: (prefix: string, limit: RequestLimit) => AsyncIterable<StoredRecord>;
  readonly #given: StoreInProcess;
  readonly #watchers = new Set<Watcher>();

  constructor(given: StoreInProcess) {
    this.#given = given;
    const { clock, watches, lists, minPollMs, waiterTtlMs } = given.plan;
    this.pace = { minPollMs, maxPollMs: given.maxPollMs, waiterTtlMs };
    this.clock =
      clock === undefined
        ? { stepMs: 1, skewMs: 0, endsHolds: false }
        : { stepMs: clock.stepMs, skewMs: clock.skewMs };
    if (clock !== undefined && isAskedFor(clock)) this.askTime = (limit) => this.#askTime(limit);
    this.tellsWhom = watches && given.plan.tellsWhom !== 'nothing';
    if (watches) this.watch = (key, changed) => this.#watch(key, changed);
    if (lists) this.list = (prefix, limit) => this.#list(prefix, limit);
    given.link.onReset = () => this.#watchAgain();
  }

  read(keys: readonly string[], limit: RequestLimit): Promise<RecordsRead> {
    const { server, carriedOut } = this.#given;
    return this.#send(
      () => `read ${keys.join(', ')}`,
      limit,
      () => {
        for (const key of keys) carriedOut('read', key);
        return server.read(keys);
      },
    );
  }

  write(write: RecordWrite, limit: RequestLimit): Promise<RecordWritten> {
    const { server, carriedOut } = this.#given;
    const what = write.value === undefined ? 'delete' : 'write';
    return this.#send(
      () => `${what} ${write.key} if it is ${write.ifVersion ?? 'absent'}`,
      limit,
      () => {
        carriedOut('write', write.key);
        return server.write(write);
      },
    );
  }

  #askTime(limit: RequestLimit): Promise<number | undefined> {
    return this.#send(
      () => 'ask for the time',
      limit,
      () => this.#given.server.time,
    );
  }

  isRetryable(error: unknown): boolean {
    return (
      error instanceof ConnectionLost || error instanceof ServerFailure || error instanceof RequestAborted
    );
  }

  close(): Promise<void> {
    for (const watcher of this.#watchers) this.#given.server.unwatch(watcher);
    this.#watchers.clear();
    return Promise.resolve();
  }

  /** Sends a request, and again where it failed, as clients of such stores do: the first one may have been carried out. */
  async #send<T>(what: () => string, limit: RequestLimit, execute: () => T): Promise<T> {
    const { process, link, plan } = this.#given;
    const { clock, world } = process;
    const endsAt = clock.monotonic() + limit.timeoutMs;
    const giveUpAt = plan.endsAtAbort ? world.now + clock.trueTime(limit.timeoutMs) : Infinity;
    for (let failures = 0; ; ) {
      try {
        const answer = link.request(what, giveUpAt, execute);
        return (await (plan.endsAtAbort ? Promise.race([answer, aborted(limit)]) : answer)).value;
      } catch (error) {
        failures += 1;
        if (error instanceof RequestAborted || failures > plan.retries) throw error;
        if (clock.monotonic() >= endsAt) throw error;
        await process.sleep(process.random.next() * FIRST_PAUSE_MS * 2 ** failures);
      }
    }
  }

  async *#list(prefix: string, limit: RequestLimit): AsyncGenerator<StoredRecord> {
    const { server } = this.#given;
    yield* await this.#send(
      () => `list ${prefix}`,
      limit,
      () => server.list(prefix),
    );
  }

  #watch(key: string, changed: (change?: RecordChange) => void): () => void {
    const { link, server } = this.#given;
    const watcher: Watcher = {
      key,
      told: (change) =>
        link.push(
          () => `${key} has changed${change === undefined ? '' : `, and calls ${change.wakes.join(' ')}`}`,
          () => {
            if (this.#watchers.has(watcher)) changed(change);
          },
        ),
    };
    this.#watchers.add(watcher);
    void this.#subscribe(watcher);
    return () => {
      this.#watchers.delete(watcher);
      server.unwatch(watcher);
    };
  }

  /** The watch begins when the server has heard of it, and then the client does not know what it has missed. */
  async #subscribe(watcher: Watcher): Promise<void> {
    const { process, link, server } = this.#given;
    while (this.#watchers.has(watcher)) {
      try {
        await link.request(
          () => `watch ${watcher.key}`,
          Infinity,
          () => {
            if (!this.#watchers.has(watcher)) return;
            server.watch(watcher);
            watcher.told();
          },
        );
        return;
      } catch {
        await process.sleep(SUBSCRIBES_AGAIN_MS);
      }
    }
  }

  /** The connection broke, and the watches with it. */
  #watchAgain(): void {
    for (const watcher of this.#watchers) {
      this.#given.server.unwatch(watcher);
      void this.#subscribe(watcher);
    }
  }
}

function aborted({ signal }: RequestLimit): Promise<never> {
  return new Promise((_, reject) => {
    const abort = (): void => reject(new RequestAborted('the answer is of no use any more'));
    if (signal.aborted) abort();
    else signal.addEventListener('abort', abort, { once: true });
  });
}
