import type {
  Call,
  Conflict,
  Holder,
  InspectOptions,
  LockMode,
  ResourceState,
  Waiter,
} from '@locks/core/backend';
import { entriesAt, keysAt, revisionOf, succeededAt } from './txn-responses.ts';
import { modifiedAt, read, unchangedSince, when } from './conditions.ts';
import { decodeEntry, reencode, type EtcdEntry } from './etcd-entry.ts';
import { retryWhileChanging } from './etcd-errors.ts';
import type { EtcdPort } from './etcd-port.ts';
import type { Keys } from './keys.ts';
import { inQueueOrder } from './queue-turns.ts';

const PAGE = 200;
const MOST_RESIZED = 100;

/** The operators' functions: inspect and list resources, and change the limit of permits. */
export class ResourceStates {
  readonly #port: EtcdPort;
  readonly #keys: Keys;

  constructor(port: EtcdPort, keys: Keys) {
    this.#port = port;
    this.#keys = keys;
  }

  async entries(resource: string, call: Call): Promise<EtcdEntry[]> {
    const range = this.#keys.rangeOf(resource);
    const response = await this.#port.run([read(range)], call);
    return inQueueOrder(entriesAt(response, 0));
  }

  async inspect(resource: string, call: Call, options?: InspectOptions): Promise<ResourceState> {
    const entries = await this.entries(resource, call);
    const shown = options?.waiters === false ? entries.filter(({ held }) => held) : entries;
    return await this.#stateOf(resource, shown, call);
  }

  async *list(prefix: string, call: Call): AsyncGenerator<ResourceState> {
    const { key, range_end } = this.#keys.rangeOfNames(prefix);
    let from = key;
    let resource: string | undefined;
    let entries: EtcdEntry[] = [];
    for (;;) {
      const page = { request_range: { key: from, range_end, limit: PAGE } };
      const kvs = keysAt(await this.#port.run([page], call), 0);
      for (const kv of kvs) {
        const name = this.#keys.parse(kv.key)?.resource;
        if (name === undefined) continue;
        if (name !== resource && resource !== undefined) {
          yield await this.#stateOf(resource, inQueueOrder(entries), call);
          entries = [];
        }
        resource = name;
        entries.push(decodeEntry(kv));
      }
      const last = kvs.at(-1);
      if (last === undefined || kvs.length < PAGE) break;
      from = Buffer.concat([last.key, Buffer.from([0])]);
    }
    if (resource !== undefined) yield await this.#stateOf(resource, inQueueOrder(entries), call);
  }

  async holder(entry: EtcdEntry, call: Call): Promise<Holder> {
    const left = await this.#port.leaseTimeToLive(entry.lease, call);
    return {
      ...named(entry),
      fencingToken: entry.token,
      heldForMs: age(entry),
      // The server rounds the remaining time down to whole seconds: the lease has less than one second more.
      ...(left === undefined ? undefined : { expiresInMs: Math.min(left.left + 1, left.granted) * 1_000 }),
    };
  }

  /** Writes the limit into every entry of the resource in one transaction. */
  async resize(resource: string, limit: number, call: Call): Promise<{ readonly status: 'set' } | Conflict> {
    const range = this.#keys.rangeOf(resource);
    let response = await this.#port.run([read(range)], call);
    let entries = entriesAt(response, 0);
    const message = 'The permits changed again and again while their limit was set.';
    return await retryWhileChanging<{ readonly status: 'set' } | Conflict>(message, async () => {
      const other = entries.find(({ mode }) => mode.kind !== 'permit');
      if (other !== undefined) return { status: 'conflict', with: other.mode };
      if (entries.length > MOST_RESIZED) {
        throw new Error(
          `${entries.length} acquisitions hold permits or wait: a resize can change at most ${MOST_RESIZED} in one step.`,
        );
      }
      if (entries.every(({ mode }) => mode.kind === 'permit' && mode.limit === limit))
        return { status: 'set' };
      const puts = entries.map((entry) => ({
        request_put: {
          key: entry.key,
          value: reencode(entry, withLimit(entry.mode, limit)),
          ignore_lease: true,
        },
      }));
      // An entry that was deleted meanwhile must not be written again.
      const conditions = [
        unchangedSince(range, revisionOf(response)),
        ...entries.map(({ key, modRevision }) => modifiedAt(key, modRevision)),
      ];
      response = await this.#port.run([when(conditions, puts), read(range)], call);
      entries = entriesAt(response, 1);
      return succeededAt(response, 0) ? { status: 'set' } : undefined;
    });
  }

  async #stateOf(resource: string, entries: readonly EtcdEntry[], call: Call): Promise<ResourceState> {
    const holders = entries.filter(({ held }) => held);
    return {
      name: resource,
      holders: await Promise.all(holders.map((entry) => this.holder(entry, call))),
      waiters: entries.filter(({ held }) => !held).map(waiterOf),
    };
  }
}

function withLimit(mode: LockMode, limit: number): LockMode {
  return mode.kind === 'permit' ? { ...mode, limit } : mode;
}

function waiterOf(entry: EtcdEntry): Waiter {
  return { ...named(entry), waitingForMs: age(entry) };
}

function named({ acquisitionId, mode, label }: EtcdEntry) {
  return { acquisitionId, mode, ...(label !== undefined && { label }) };
}

/** The age of an entry by the clocks of two machines: for operators only. */
function age({ at }: EtcdEntry): number {
  return Math.max(0, Date.now() - at);
}
