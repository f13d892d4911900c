import type { Contender } from '../contenders/contender.ts';
import { type ClientCounts, clientMeter, sumOf } from '../measure/client-counts.ts';
import type { Meter } from '../measure/meter.ts';
import { pin, type Pinning, planPinning } from '../measure/pinning.ts';
import { startWorker, type Worker } from './worker.ts';

export interface Address {
  readonly host: string;
  readonly port: number;
}

/** The server of a suite: where it is, how to count its requests, and how to stop it. */
export interface TestbedServer {
  /** The argument of the contenders' `open`. */
  readonly url: string;
  /** @defaultValue the client processes count what they send */
  readonly meter?: Meter;
  /** Where the server listens, and its url behind other addresses: to put a slow network in between. */
  readonly network?: {
    readonly addresses: readonly Address[];
    urlAt(addresses: readonly Address[]): string;
  };
  /** Of a server on this machine. */
  readonly pid?: number;
  /** How many bytes of memory the server uses, or of its disk where it keeps its data there. */
  storedBytes?(): Promise<number | undefined>;
  /** Every key of Redis. */
  keys?(): AsyncIterable<string>;
  /** Reported with the figures, as `{ 'redis-server': '7.0.15' }`. */
  readonly versions: Readonly<Record<string, string>>;
  stop(): Promise<void>;
}

/** The server under test and the client processes. */
export class Testbed implements AsyncDisposable {
  readonly server: TestbedServer;
  readonly pinning: Pinning | undefined;
  /** What was pinned to what, or why nothing was. */
  readonly placement: string;
  readonly #clients = clientMeter(() => this.#sent());
  /** What client processes had sent that were ended. */
  readonly #sentBefore: ClientCounts[] = [];
  readonly #workers = new Set<Worker>();
  readonly #workersOf = new Map<string, Promise<Worker>[]>();

  constructor(server: TestbedServer, pinning: Pinning | undefined, placement: string) {
    this.server = server;
    this.pinning = pinning;
    this.placement = placement;
  }

  get url(): string {
    return this.server.url;
  }

  get meter(): Meter {
    return this.server.meter ?? this.#clients;
  }

  /** The client processes of a contender, the first `count` of them; they stay for the whole run. */
  async workersOf(contender: Contender, count: number): Promise<Worker[]> {
    const workers = this.#workersOf.get(contender.name) ?? [];
    this.#workersOf.set(contender.name, workers);
    while (workers.length < count) workers.push(this.#startFor(contender));
    return await Promise.all(workers.slice(0, count));
  }

  /** Ends the client processes of a contender; the next ones are fresh. */
  async endWorkers({ name }: Contender): Promise<void> {
    const workers = this.#workersOf.get(name) ?? [];
    this.#workersOf.delete(name);
    // A process that could not open its session was ended already.
    for (const started of await Promise.allSettled(workers)) {
      if (started.status === 'fulfilled') await this.end(started.value);
    }
  }

  /** A client process for one measurement. */
  startWorker(nodeOptions?: readonly string[]): Worker {
    const worker = startWorker(this.pinning?.clients, nodeOptions);
    this.#workers.add(worker);
    return worker;
  }

  async end(worker: Worker): Promise<void> {
    if (this.server.meter === undefined) this.#sentBefore.push(await worker.call.sent());
    this.#workers.delete(worker);
    await worker.kill();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#workers].map((worker) => worker.kill()));
    await this.server.stop();
  }

  async #sent(): Promise<ClientCounts> {
    const now = await Promise.all([...this.#workers].map((worker) => worker.call.sent()));
    return sumOf([...this.#sentBefore, ...now]);
  }

  async #startFor(contender: Contender): Promise<Worker> {
    const worker = this.startWorker();
    try {
      await worker.call.open(contender.store, contender.name, this.url);
      return worker;
    } catch (error) {
      await this.end(worker);
      throw error;
    }
  }
}

/** A private server on a core of its own, or a given server, which is left as it is. */
export async function openTestbed(start: () => Promise<TestbedServer>, given?: string): Promise<Testbed> {
  const { pinning, why } = planPinning();
  if (given !== undefined) {
    const clients = pinning === undefined ? `NOT PINNED (${why})` : `clients on core ${pinning.clients}`;
    return new Testbed(await start(), pinning, `${clients}; the server of ${given} runs where it runs`);
  }
  if (pinning === undefined) {
    return new Testbed(await start(), undefined, `NOT PINNED (${why}): latencies may have two peaks`);
  }
  // This process only waits while others are measured; the server that it starts runs on the same core.
  pin(process.pid, pinning.server);
  const placement = `server on core ${pinning.server}, clients on core ${pinning.clients}`;
  return new Testbed(await start(), pinning, placement);
}
