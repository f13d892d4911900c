import { startRedis } from '@locks/test-servers';
import { Redis } from 'ioredis';
import { pin, type Pinning, planPinning } from '../measure/pinning.ts';
import { Worker } from './worker.ts';

/** The server under test, the connection that watches it, and the client processes. */
export class Stage implements AsyncDisposable {
  readonly url: string;
  readonly control: Redis;
  readonly pinning: Pinning | undefined;
  /** What was pinned to what, or why nothing was. */
  readonly placement: string;
  readonly #stopServer: () => Promise<void>;
  readonly #workers = new Set<Worker>();
  readonly #crews = new Map<string, Promise<Worker>[]>();

  constructor(url: string, pinning: Pinning | undefined, placement: string, stopServer: () => Promise<void>) {
    this.url = url;
    this.control = new Redis(url);
    this.pinning = pinning;
    this.placement = placement;
    this.#stopServer = stopServer;
  }

  /** The client processes of a contender, the first `count` of them; they stay for the whole run. */
  async crew(contender: string, count: number): Promise<Worker[]> {
    const crew = this.#crews.get(contender) ?? [];
    this.#crews.set(contender, crew);
    while (crew.length < count) crew.push(this.#hire(contender));
    return await Promise.all(crew.slice(0, count));
  }

  /** Ends the client processes of a contender; the next ones are fresh. */
  async dismissCrew(contender: string): Promise<void> {
    const crew = this.#crews.get(contender) ?? [];
    this.#crews.delete(contender);
    await Promise.all(crew.map(async (worker) => await this.dismiss(await worker)));
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
    this.control.disconnect();
    await this.#stopServer();
  }

  async #hire(contender: string): Promise<Worker> {
    const worker = this.startWorker();
    await worker.call('open', contender, this.url);
    return worker;
  }
}

/** A private server on a core of its own, or the one of `REDIS_URL`, which is left as it is. */
export async function openStage(): Promise<Stage> {
  const { pinning, why } = planPinning();
  const given = process.env['REDIS_URL'];
  if (given) {
    const clients = pinning === undefined ? `NOT PINNED (${why})` : `clients on core ${pinning.clients}`;
    return new Stage(
      given,
      pinning,
      `${clients}; the server of REDIS_URL runs where it runs`,
      async () => {},
    );
  }
  const server = await startRedis();
  if (pinning === undefined) {
    return new Stage(server.url, undefined, `NOT PINNED (${why}): latencies may have two peaks`, () =>
      server.stop(),
    );
  }
  pin(server.pid, pinning.server);
  // This process only waits while others are measured.
  pin(process.pid, pinning.server);
  const placement = `server on core ${pinning.server}, clients on core ${pinning.clients}`;
  return new Stage(server.url, pinning, placement, () => server.stop());
}
