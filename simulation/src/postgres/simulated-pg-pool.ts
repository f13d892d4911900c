import { EventEmitter } from 'node:events';
import { SimulatedPgClient, type SimulatedPgOptions } from './simulated-pg-client.ts';

type Lend = (error: Error | undefined, client?: LentPgClient) => void;

/** A client of a pool. */
export class LentPgClient extends SimulatedPgClient {
  release: (error?: Error | boolean) => void = () => {};
}

/** The pool of `pg-pool`: it lends the client that came back last, and makes another one while it has fewer than it may have. */
export class SimulatedPgPool extends EventEmitter {
  readonly options: SimulatedPgOptions & { readonly max: number };
  ending = false;
  readonly #clients = new Set<LentPgClient>();
  readonly #idle: LentPgClient[] = [];
  readonly #pending: Lend[] = [];
  readonly #idleListeners = new WeakMap<LentPgClient, (error: Error) => void>();

  constructor(options: SimulatedPgOptions & { readonly max: number }) {
    super();
    this.options = options;
    // The application listens to its pool, as it should when the locks are closed.
    this.on('error', () => {});
  }

  get idleCount(): number {
    return this.#idle.length;
  }

  get totalCount(): number {
    return this.#clients.size;
  }

  connect(lend: Lend): void {
    this.#pending.push(lend);
    if (this.#idle.length > 0) queueMicrotask(() => this.#serve());
    else this.#serve();
  }

  /** Only here so that this is taken for a pool. */
  query(): never {
    throw new Error('the adapter uses clients');
  }

  #serve(): void {
    if (this.#pending.length === 0) return;
    const client = this.#idle.pop();
    if (client === undefined && this.#clients.size >= this.options.max) return;
    const lend = this.#pending.shift();
    if (lend === undefined) return;
    if (client === undefined) return this.#make(lend);
    client.removeListener('error', this.#idleListeners.get(client) ?? (() => {}));
    this.#lend(client, lend);
  }

  #make(lend: Lend): void {
    const client = new LentPgClient(this.options);
    this.#clients.add(client);
    const whileIdle = (error: Error): void => {
      this.#remove(client);
      this.emit('error', error, client);
    };
    this.#idleListeners.set(client, whileIdle);
    client.connect().then(
      () => this.#lend(client, lend),
      (error: Error) => {
        this.#clients.delete(client);
        lend(error);
        this.#serve();
      },
    );
  }

  #lend(client: LentPgClient, lend: Lend): void {
    let isLent = true;
    client.release = (error) => {
      if (!isLent) throw new Error('Release called on client which has already been released to the pool.');
      isLent = false;
      const whileIdle = this.#idleListeners.get(client);
      if (whileIdle !== undefined) client.on('error', whileIdle);
      if (error || this.ending || !client.isUsable) this.#remove(client);
      else this.#idle.push(client);
      this.#serve();
    };
    lend(undefined, client);
  }

  #remove(client: LentPgClient): void {
    const at = this.#idle.indexOf(client);
    if (at >= 0) this.#idle.splice(at, 1);
    this.#clients.delete(client);
    void client.end();
    this.#serve();
  }
}
