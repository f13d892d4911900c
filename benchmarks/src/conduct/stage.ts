import type { Contender } from '../contenders/contender.ts';
import type { Meter } from '../measure/meter.ts';
import { pin, type Pinning, planPinning } from '../measure/pinning.ts';
import { Worker } from './worker.ts';

export interface Address {
  readonly host: string;
  readonly port: number;
}

/** What a suite brings: where its server is, how to count what it is asked, and how to end it. */
export interface StageServer {
  /** For the contenders' `open`. */
  readonly url: string;
  readonly meter: Meter;
  /** Where it listens, and the url of the same behind other addresses: to put a slow network in between. */
  readonly network?: {
    readonly addresses: readonly Address[];
    urlAt(addresses: readonly Address[]): string;
  };
  /** Named with the figures, as `{ 'redis-server': '7.0.15' }`. */
  readonly versions: Readonly<Record<string, string>>;
  stop(): Promise<void>;
}

/** The server under test and the client processes. */
export class Stage<S extends StageServer = StageServer> implements AsyncDisposable {
  readonly server: S;
  readonly pinning: Pinning | undefined;
  /** What was pinned to what, or why nothing was. */
  readonly placement: string;
  readonly #workers = new Set<Worker>();
  readonly #crews = new Map<string, Promise<Worker>[]>();

  constructor(server: S, pinning: Pinning | undefined, placement: string) {
    this.server = server;
    this.pinning = pinning;
    this.placement = placement;
  }

  get url(): string {
    return this.server.url;
  }

  get meter(): Meter {
    return this.server.meter;
  }

  /** The client processes of a contender, the first `count` of them; they stay for the whole run. */
  async crew(contender: Contender, count: number): Promise<Worker[]> {
    const crew = this.#crews.get(contender.name) ?? [];
    this.#crews.set(contender.name, crew);
    while (crew.length < count) crew.push(this.#hire(contender));
    return await Promise.all(crew.slice(0, count));
  }

  /** Ends the client processes of a contender; the next ones are fresh. */
  async dismissCrew({ name }: Contender): Promise<void> {
    const crew = this.#crews.get(name) ?? [];
    this.#crews.delete(name);
    // One that could not open its session is ended with the others.
    for (const hired of await Promise.allSettled(crew)) {
      if (hired.status === 'fulfilled') await this.dismiss(hired.value);
    }
  }

  /** A client process for one thing only. */
  startWorker(nodeOptions?: readonly string[]): Worker {
    const worker = new Worker(this.pinning?.clients, nodeOptions);
    this.#workers.add(worker);
    return worker;
  }

  async dismiss(worker: Worker): Promise<void> {
    this.#workers.delete(worker);
    await worker.stop();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#workers].map((worker) => worker.stop()));
    await this.server.stop();
  }

  async #hire(contender: Contender): Promise<Worker> {
    const worker = this.startWorker();
    try {
      await worker.call('open', contender.store, contender.name, this.url);
      return worker;
    } catch (error) {
      await this.dismiss(worker);
      throw error;
    }
  }
}

/** A private server on a core of its own, or one that somebody else runs, which is left as it is. */
export async function openStage<S extends StageServer>(
  start: () => Promise<S>,
  given?: string,
): Promise<Stage<S>> {
  const { pinning, why } = planPinning();
  if (given !== undefined) {
    const clients = pinning === undefined ? `NOT PINNED (${why})` : `clients on core ${pinning.clients}`;
    return new Stage(await start(), pinning, `${clients}; the server of ${given} runs where it runs`);
  }
  if (pinning === undefined) {
    return new Stage(await start(), undefined, `NOT PINNED (${why}): latencies may have two peaks`);
  }
  // This process only waits while others are measured, and what it starts stays with it.
  pin(process.pid, pinning.server);
  const placement = `server on core ${pinning.server}, clients on core ${pinning.clients}`;
  return new Stage(await start(), pinning, placement);
}
