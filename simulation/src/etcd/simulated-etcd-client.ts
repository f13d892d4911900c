import type { ILeaseKeepAliveRequest, IRangeRequest, ITxnRequest, IWatchRequest } from 'etcd3';
import { ConnectionLost, type Link } from '../network/link.ts';
import type { SimulatedProcess } from '../process/simulated-process.ts';
import {
  GRPCCancelledError,
  GRPCDeadlineExceededError,
  GRPCUnavailableError,
  isSentAgain,
} from './etcd-failures.ts';
import type { SimulatedEtcd } from './simulated-etcd.ts';
import { describeTxn } from './describe-txn.ts';

/** `etcd3` sends a call again so often. */
const MOST_RETRIES = 3;

/** What the adapter gives with a call. */
interface CallOptions {
  readonly deadline?: number | Date;
  readonly interceptors?: readonly ((options: object, next: (options: object) => object) => unknown)[];
}

export interface EtcdInProcess {
  readonly process: SimulatedProcess;
  readonly link: Link;
  readonly server: SimulatedEtcd;
}

/** The client `etcd3` of one process, as far as the adapter uses it: it repeats calls, and its streams break. */
export class SimulatedEtcdClient {
  readonly #given: EtcdInProcess;

  constructor(given: EtcdInProcess) {
    this.#given = given;
  }

  readonly kv = {
    txn: (request: ITxnRequest, options?: CallOptions) =>
      this.#call(
        () => describeTxn(request),
        options,
        () => this.#given.server.txn(request),
      ),
    range: (request: IRangeRequest, options?: CallOptions) =>
      this.#call(
        () => `range ${String(request.key)}`,
        options,
        () => this.#given.server.range(request),
      ),
  };

  readonly leaseClient = {
    leaseGrant: ({ TTL }: { readonly TTL: number }, options?: CallOptions) =>
      this.#call(
        () => `grant a lease of ${TTL} s`,
        options,
        () => this.#given.server.leaseGrant(TTL),
      ),
    leaseRevoke: ({ ID }: { readonly ID: string }, options?: CallOptions) =>
      this.#call(
        () => `revoke lease ${ID}`,
        options,
        () => this.#given.server.leaseRevoke(ID),
      ),
    leaseTimeToLive: ({ ID }: { readonly ID: string }, options?: CallOptions) =>
      this.#call(
        () => `time of lease ${ID}`,
        options,
        () => this.#given.server.leaseTimeToLive(ID),
      ),
    leaseKeepAlive: async () => this.#keepAlives(),
  };

  readonly watchClient = { watch: async () => this.#watches() };

  async #call<T>(what: () => string, options: CallOptions | undefined, execute: () => T): Promise<T> {
    for (let retries = 0; ; retries += 1) {
      try {
        return await this.#send(what, options, execute);
      } catch (error) {
        if (!isSentAgain(error) || retries === MOST_RETRIES) throw error;
        await this.#given.process.sleep(0);
      }
    }
  }

  #send<T>(what: () => string, options: CallOptions | undefined, execute: () => T): Promise<T> {
    const { process, link } = this.#given;
    const { deadline = Infinity, interceptors = [] } = options ?? {};
    for (const intercept of interceptors) intercept({}, () => ({}));
    return new Promise((resolve, reject) => {
      const timer = process.setTimeout(
        () => reject(new GRPCDeadlineExceededError('4 DEADLINE_EXCEEDED: Deadline exceeded')),
        Number(deadline) - process.clock.wall(),
      );
      link
        .request(what, Infinity, execute)
        .then(
          ({ value }) => resolve(value),
          (error: unknown) => reject(error instanceof ConnectionLost ? unavailable(error) : error),
        )
        .finally(() => timer.cancel());
    });
  }

  #keepAlives(): SimulatedDuplex<ILeaseKeepAliveRequest> {
    return this.#open<ILeaseKeepAliveRequest>(
      ({ ID = '' }) => `keep lease ${ID} alive`,
      (wire) => {
        const session = this.#given.server.keepAlives(
          (response) =>
            wire.push('lostReplies', () => `lease ${response.ID} has ${response.TTL} s`, response),
          wire.end,
        );
        return { received: ({ ID = '' }) => session.received(String(ID)), close: session.close };
      },
    );
  }

  #watches(): SimulatedDuplex<IWatchRequest> {
    return this.#open<IWatchRequest>(describeWatch, (wire) =>
      this.#given.server.watches((what, response) => wire.push('lostPushes', what, response), wire.end),
    );
  }

  #open<Request>(
    describe: (request: Request) => string,
    openAt: (wire: ServerWire) => ServerSession<Request>,
  ): SimulatedDuplex<Request> {
    const { process, link } = this.#given;
    const stream = link.openStream(() => {
      session.close();
      duplex.emit('error', unavailable());
    });
    const session = openAt({
      push: (rate, what, response) => stream.push(rate, what, () => duplex.emit('data', response)),
      end: () =>
        stream.push(
          'lostReplies',
          () => 'the stream ends',
          () => {
            close();
            duplex.emit('end');
          },
        ),
    });
    const close = (): void => {
      session.close();
      stream.close();
    };
    const duplex = new SimulatedDuplex<Request>(process, {
      write: (request) =>
        stream.send(
          () => describe(request),
          () => session.received(request),
        ),
      close,
    });
    return duplex;
  }
}

/** By which a server answers on a stream. */
interface ServerWire {
  push(rate: 'lostReplies' | 'lostPushes', what: () => string, response: unknown): void;
  end(): void;
}

interface ServerSession<Request> {
  received(request: Request): void;
  close(): void;
}

interface DuplexWire<Request> {
  write(request: Request): void;
  close(): void;
}

type Listener = (value: unknown) => void;

/** A stream as the client gives it: it ends once, by an error or by either side. */
class SimulatedDuplex<Request> {
  readonly #process: SimulatedProcess;
  readonly #wire: DuplexWire<Request>;
  readonly #listeners = new Map<string, Listener[]>();
  #isOver = false;
  writable = true;

  constructor(process: SimulatedProcess, wire: DuplexWire<Request>) {
    this.#process = process;
    this.#wire = wire;
  }

  on(event: string, listener: Listener): this {
    this.#listeners.set(event, [...(this.#listeners.get(event) ?? []), listener]);
    return this;
  }

  write(request: Request): void {
    if (this.writable && !this.#isOver) this.#wire.write(request);
  }

  end(): void {
    this.writable = false;
  }

  /** What has not arrived does not any more, and the client reports an error. */
  cancel(): void {
    if (this.#isOver) return;
    this.#wire.close();
    this.#process.deliver(this.#process.world.now, () =>
      this.emit('error', new GRPCCancelledError('1 CANCELLED: Cancelled on client')),
    );
  }

  emit(event: 'data' | 'error' | 'end', value?: unknown): void {
    if (this.#isOver) return;
    if (event !== 'data') this.#isOver = true;
    for (const listener of this.#listeners.get(event) ?? []) listener(value);
  }
}

function unavailable({ message }: { readonly message: string } = { message: 'Connection dropped' }): Error {
  return new GRPCUnavailableError(`14 UNAVAILABLE: ${message}`);
}

function describeWatch({ create_request: create, cancel_request: cancel }: IWatchRequest): string {
  if (create !== undefined)
    return `watch ${create.watch_id}: ${String(create.key)} from ${create.start_revision ?? 'now'}`;
  return cancel === undefined ? 'ask for progress' : `cancel watch ${cancel.watch_id}`;
}
