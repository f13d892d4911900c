import { setTimeout as sleep } from 'node:timers/promises';
import { LockError } from '@locks/core';
import { mustBe, NoAnswerError, type ResultStore } from '@locks/core/backend';
import type { Etcd3 } from 'etcd3';
import { read } from './conditions.ts';
import { isLeaseGone } from './etcd-errors.ts';
import { EtcdPort } from './etcd-port.ts';
import { escapeName } from './keys.ts';
import { REQUEST_TIMEOUT_MS, type EtcdSlotsOptions, slotSource } from './options.ts';
import { lastWrittenAt } from './text-store.ts';
import { keysAt } from './txn-responses.ts';

/** A token is kept so much longer than its result, since it refuses writers that lost their lock. */
const FENCE_HOURS = 1;
const HOUR_MS = 3_600_000;
const MOST_BYTES = 1_048_576;
const LIMIT_MS = 10_000;
const PAUSE_MS = 10;

// setup: import { createLocks } from '@locks/core'; import { clientOptions, etcdBackend, etcdResults } from '@locks/etcd'; import { coalesce } from '@locks/once'; import { Etcd3 } from 'etcd3';
// setup: declare function fetchPrices(signal: AbortSignal): Promise<Record<string, number>>;
/**
 * The store in which `coalesce` of `@locks/once` shares results: a key for each result, which a lease of the server ends. Its time is rounded up
 * to whole seconds, and servers grant at least 1.5 election timeouts, 2 s by default. A new leader begins it anew.
 *
 * @param client - an `Etcd3`, which stays open
 * @throws LockError `LOCK_INVALID_ARGUMENT` for a bad option; its functions throw errors of the client as they are, and `set` `LOCK_LOST` with
 * reason `taken-over` when a newer token wrote before
 * @example
 * ```ts
 * const client = new Etcd3(clientOptions({ hosts: 'http://10.0.0.1:2379' }));
 * const locks = createLocks(etcdBackend(client));
 * const options = { store: etcdResults(client), shareForMs: 5_000 };
 * const prices = await coalesce(locks, 'prices', ({ signal }) => fetchPrices(signal), options);
 * ```
 */
export function etcdResults(client: Etcd3, options: EtcdSlotsOptions = {}): ResultStore {
  const { source, prefix } = slotSource('etcdResults()', client, options);
  return new EtcdResults(new EtcdPort(source, REQUEST_TIMEOUT_MS), prefix);
}

/** A lease for the tokens of an hour. */
interface FenceLease {
  readonly id: string;
  readonly grantedAt: number;
}

class EtcdResults implements ResultStore {
  readonly #port: EtcdPort;
  readonly #prefix: string;
  /** By the hours for which a token is kept. */
  readonly #fences = new Map<number, FenceLease>();

  constructor(port: EtcdPort, prefix: string) {
    this.#port = port;
    this.#prefix = prefix;
  }

  get = async (key: string): Promise<string | undefined> => {
    const response = await this.#port.run([read({ key: this.#resultKey(key) })], REQUEST_TIMEOUT_MS);
    return keysAt(response, 0)[0]?.value.toString();
  };

  set = async (key: string, value: string, token: bigint, ttlMs: number): Promise<void> => {
    const bytes = Buffer.from(value);
    if (bytes.length > MOST_BYTES)
      throw mustBe(`etcdResults(): the result of ${key}`, `at most ${MOST_BYTES} bytes`, bytes.length);
    const deadline = performance.now() + LIMIT_MS;
    do {
      const outcome = await this.#tryToSet(key, bytes, token, ttlMs);
      if (outcome === 'written') return;
      if (outcome === 'newer') {
        const says = `etcdResults(): the result of ${key} was not written: there is one under a token newer than ${token}.`;
        throw new LockError('LOCK_LOST', says, { lockName: key, reason: 'taken-over' });
      }
      await sleep(PAUSE_MS * (0.5 + Math.random()));
    } while (performance.now() < deadline);
    throw new NoAnswerError(`etcdResults(): others wrote the result of ${key} before each try`);
  };

  async #tryToSet(
    key: string,
    value: Buffer,
    token: bigint,
    ttlMs: number,
  ): Promise<'written' | 'newer' | 'changed'> {
    const tokenKey = this.#tokenKey(key);
    const present = keysAt(await this.#port.run([read({ key: tokenKey })], REQUEST_TIMEOUT_MS), 0)[0];
    if (present !== undefined && BigInt(present.value.toString()) > token) return 'newer';
    const hours = Math.ceil(ttlMs / HOUR_MS) + FENCE_HOURS;
    const [lease, fence] = await Promise.all([
      this.#port.leaseGrant(Math.ceil(ttlMs / 1_000), REQUEST_TIMEOUT_MS),
      this.#fence(hours),
    ]);
    try {
      const { succeeded } = await this.#port.txn(
        {
          compare: [lastWrittenAt(tokenKey, present?.mod_revision)],
          success: [
            { request_put: { key: this.#resultKey(key), value, lease: lease.id } },
            { request_put: { key: tokenKey, value: Buffer.from(String(token)), lease: fence } },
          ],
          failure: [],
        },
        REQUEST_TIMEOUT_MS,
      );
      if (succeeded) return 'written';
    } catch (error) {
      if (!isLeaseGone(error)) throw error;
      // An administrator has ended one of the two, or the answer took longer than the result was to last.
      this.#fences.delete(hours);
    }
    // The lease of a result that was not written would end by itself, later.
    this.#port.leaseRevoke(lease.id, REQUEST_TIMEOUT_MS).catch(() => {});
    return 'changed';
  }

  /** A lease that lasts for so many hours from now: one an hour serves all results of the process. */
  async #fence(hours: number): Promise<string> {
    const grantedAt = Date.now();
    const present = this.#fences.get(hours);
    if (present !== undefined && Math.abs(grantedAt - present.grantedAt) < HOUR_MS) return present.id;
    const { id } = await this.#port.leaseGrant(((hours + 1) * HOUR_MS) / 1_000, REQUEST_TIMEOUT_MS);
    this.#fences.set(hours, { id, grantedAt });
    return id;
  }

  #resultKey(key: string): Buffer {
    return Buffer.from(`${this.#prefix}result/${escapeName(key)}`);
  }

  #tokenKey(key: string): Buffer {
    return Buffer.from(`${this.#prefix}result-token/${escapeName(key)}`);
  }
}
