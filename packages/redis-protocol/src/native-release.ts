import type { RedisCommand, RedisPort } from './port.ts';
import { wholeIn } from './reply-shape.ts';

/** The number of releases that use the script alone after one with a waiter, or if the server has no such command. */
const AFTER_A_WAITER = 64;
const AFTER_REFUSALS = 100_000;

/**
 * Releases a lock that nobody waits for by one command of the server's own, which deletes a key that has a given value: Redis
 * from 8.4, Valkey from 9. Whether the server has one is found out by using it, and again after many releases: it may have been
 * upgraded. It is not used in a cluster, where a client does not know which node a new command belongs to. It takes 0.3 µs
 * of the server, the script 2.9 (Redis 8.6).
 */
export class NativeRelease {
  readonly #port: RedisPort;
  #isValkey = false;
  #isKnown = false;
  #scriptsAhead: number;

  constructor(port: RedisPort) {
    this.#port = port;
    this.#scriptsAhead = port.cluster || port.isPolled || port.repeatsRefused ? Infinity : 0;
  }

  /** Returns whether the next release may try the command; counts the releases that may not. */
  mayTry(): boolean {
    if (this.#scriptsAhead > 0) {
      this.#scriptsAhead -= 1;
      return false;
    }
    // Of thousands that are sent at once, one finds out whether the server has a command, and the others use the script.
    if (!this.#isKnown) this.#scriptsAhead = Infinity;
    return true;
  }

  /** Releases the lock; `false`: the key has another value, or the server has no such command for this user. */
  async release(key: string, value: string): Promise<boolean> {
    for (const isValkey of [this.#isValkey, !this.#isValkey]) {
      const command: RedisCommand = isValkey ? ['DELIFEQ', key, value] : ['DELEX', key, 'IFEQ', value];
      try {
        const deleted = wholeIn(await this.#port.send(key, command)) === 1;
        this.#isValkey = isValkey;
        if (!deleted) this.#scriptsAhead = AFTER_A_WAITER;
        else if (!this.#isKnown) this.#scriptsAhead = 0;
        this.#isKnown = true;
        return deleted;
      } catch (error) {
        if (/unknown command|NOPERM/.test(String(error))) continue;
        // A proxy that ends the connection at an unknown command: the release that core repeats uses the script.
        this.#scriptsAhead = AFTER_A_WAITER;
        throw error;
      }
    }
    this.#scriptsAhead = AFTER_REFUSALS;
    return false;
  }
}
