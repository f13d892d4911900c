import { remove } from './conditions.ts';
import type { EtcdPort, RequestLimit } from './etcd-port.ts';

/** A server accepts 128 operations in one transaction. */
const MOST_AT_ONCE = 100;
const TRANSACTIONS_AT_ONCE = 4;

interface Removal {
  readonly key: Buffer;
  readonly limit: RequestLimit;
  readonly resolve: (revision: number) => void;
  readonly reject: (error: unknown) => void;
}

/** Deletes keys, all those of one turn of the event loop together: thousands of waits may end at once. */
export class KeyRemovals {
  readonly #port: EtcdPort;
  readonly #pending: Removal[] = [];
  #starting = false;
  #sending = 0;

  constructor(port: EtcdPort) {
    this.#port = port;
  }

  /** Returns the revision of the deletion. */
  remove(key: Buffer, limit: RequestLimit): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#pending.push({ key, limit, resolve, reject });
      if (this.#starting) return;
      this.#starting = true;
      // `nextTick` runs after all removals of this turn were requested, and before any timer.
      process.nextTick(() => {
        this.#starting = false;
        this.#start();
      });
    });
  }

  #start(): void {
    while (this.#sending < TRANSACTIONS_AT_ONCE && this.#pending.length > 0) void this.#send();
  }

  /** Never rejects: each removal has a promise of its own. */
  async #send(): Promise<void> {
    const removals = this.#pending.splice(0, MOST_AT_ONCE);
    const [first] = removals;
    if (first === undefined) return;
    this.#sending += 1;
    try {
      const success = removals.map(({ key }) => remove(key));
      const { header } = await this.#port.run(success, first.limit);
      for (const { resolve } of removals) resolve(Number(header.revision));
    } catch (error) {
      for (const { reject } of removals) reject(error);
    }
    this.#sending -= 1;
    this.#start();
  }
}
