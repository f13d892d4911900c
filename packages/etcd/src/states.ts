import type { Call, Conflict, Holder, LockMode, ResourceState, Waiter } from '@locks/core/backend';
import { entriesAt, keysAt, revisionOf, succeededAt } from './answer.ts';
import { read, unchangedSince, when } from './conditions.ts';
import { decodeEntry, encodeAgain, type Entry } from './entry.ts';
import type { EtcdPort } from './etcd-port.ts';
import type { Keys } from './keys.ts';
import { ChangedMeanwhileError } from './retryable.ts';
import { inOrder } from './turn.ts';

const PAGE = 200;
const TRIES = 20;
const MOST_RESIZED = 100;

/** What operators see, and the limit that they change. */
export class States {
  readonly #port: EtcdPort;
  readonly #keys: Keys;

  constructor(port: EtcdPort, keys: Keys) {
    this.#port = port;
    this.#keys = keys;
  }

  async entries(resource: string, call: Call): Promise<Entry[]> {
    const range = this.#keys.rangeOf(resource);
    const response = await this.#port.txn({ compare: [], success: [read(range)], failure: [] }, call);
    return inOrder(entriesAt(response, 0));
  }

  async inspect(resource: string, call: Call): Promise<ResourceState> {
    return await this.#stateOf(resource, await this.entries(resource, call), call);
  }

  async *list(prefix: string, call: Call): AsyncGenerator<ResourceState> {
    const { key, range_end } = this.#keys.rangeOfNames(prefix);
    let from = key;
    let resource: string | undefined;
    let entries: Entry[] = [];
    for (;;) {
      const page = { request_range: { key: from, range_end, limit: PAGE } };
      const kvs = keysAt(await this.#port.txn({ compare: [], success: [page], failure: [] }, call), 0);
      for (const kv of kvs) {
        const name = this.#keys.parse(kv.key)?.resource;
        if (name === undefined) continue;
        if (name !== resource && resource !== undefined) {
          yield await this.#stateOf(resource, inOrder(entries), call);
          entries = [];
        }
        resource = name;
        entries.push(decodeEntry(kv));
      }
      const last = kvs.at(-1);
      if (last === undefined || kvs.length < PAGE) break;
      from = Buffer.concat([last.key, Buffer.from([0])]);
    }
    if (resource !== undefined) yield await this.#stateOf(resource, inOrder(entries), call);
  }

  async holder(entry: Entry, call: Call): Promise<Holder> {
    const left = await this.#port.leaseTimeToLive(entry.lease, call);
    return {
      acquisitionId: entry.acquisitionId,
      mode: entry.mode,
      ...labelled(entry),
      fencingToken: entry.token,
      heldForMs: age(entry),
      // Whole seconds, rounded down: it has less than one more.
      ...(left === undefined ? undefined : { expiresInMs: Math.min(left.left + 1, left.granted) * 1_000 }),
    };
  }

  /** Writes the limit into every entry of the resource, in one step. */
  async resize(resource: string, limit: number, call: Call): Promise<{ readonly status: 'set' } | Conflict> {
    const range = this.#keys.rangeOf(resource);
    let response = await this.#port.txn({ compare: [], success: [read(range)], failure: [] }, call);
    for (let tries = 0; tries < TRIES; tries += 1) {
      const entries = entriesAt(response, tries === 0 ? 0 : 1);
      const other = entries.find(({ mode }) => mode.kind !== 'permit');
      if (other !== undefined) return { status: 'conflict', with: other.mode };
      if (entries.length > MOST_RESIZED) {
        throw new Error(
          `${entries.length} hold permits or wait for them: the limit of at most ${MOST_RESIZED} can be changed in one step.`,
        );
      }
      if (entries.every(({ mode }) => mode.kind === 'permit' && mode.limit === limit))
        return { status: 'set' };
      const puts = entries.map((entry) => ({
        request_put: {
          key: entry.key,
          value: encodeAgain(entry, withLimit(entry.mode, limit)),
          ignore_lease: true,
        },
      }));
      // What went meanwhile must not come back.
      const conditions = [
        unchangedSince(range, revisionOf(response)),
        ...entries.map(({ key, modRevision }) => ({
          key,
          target: 'Mod' as const,
          result: 'Equal' as const,
          mod_revision: modRevision,
        })),
      ];
      response = await this.#port.txn(
        { compare: [], success: [when(conditions, puts), read(range)], failure: [] },
        call,
      );
      if (succeededAt(response, 0)) return { status: 'set' };
    }
    throw new ChangedMeanwhileError('The permits changed again and again while their limit was set.');
  }

  async #stateOf(resource: string, entries: readonly Entry[], call: Call): Promise<ResourceState> {
    const holders = entries.filter(({ held }) => held);
    return {
      resource,
      holders: await Promise.all(holders.map((entry) => this.holder(entry, call))),
      waiters: entries.filter(({ held }) => !held).map(waiterOf),
    };
  }
}

function withLimit(mode: LockMode, limit: number): LockMode {
  return mode.kind === 'permit' ? { ...mode, limit } : mode;
}

function waiterOf(entry: Entry): Waiter {
  return {
    acquisitionId: entry.acquisitionId,
    mode: entry.mode,
    ...labelled(entry),
    waitingForMs: age(entry),
  };
}

function labelled({ label }: Entry): { label?: string } {
  return label === undefined ? {} : { label };
}

/** By the clocks of two machines: for operators only. */
function age({ at }: Entry): number {
  return Math.max(0, Date.now() - at);
}
