import type { AcquireRequest, Call } from '@locks/core/backend';
import type { Acquisition } from './acquisition.ts';
import { viewAmong, entriesAt, isPartial, keysAt } from './txn-responses.ts';
import { readEnd } from './conditions.ts';
import { SendCount } from './etcd-port.ts';
import type { HoldResult, HoldWrites } from './hold-writes.ts';
import { type EtcdWaiterSession, readMarker } from './waiter-session.ts';
import type { EtcdWaiterSessions } from './waiter-sessions.ts';
import { firstMatching, queueBranches } from './txn-branches.ts';

/**
 * The most newcomers of one transaction: a server accepts 128 operations, including nested ones and both branches that queue.
 */
const MOST_AT_ONCE = 50;

interface Newcomer {
  readonly acquisition: Acquisition;
  readonly session: EtcdWaiterSession;
  readonly call: Call;
  readonly resolve: (answer: HoldResult | undefined) => void;
  readonly reject: (error: unknown) => void;
}

interface EnqueueBatch {
  readonly newcomers: Newcomer[];
  sending: boolean;
}

/**
 * Queues acquisitions of this process together: those that arrive while a transaction is under way are queued by the
 * next one. Each transaction also reads the end of the queue, where the new entries are.
 */
export class EnqueueBatches {
  readonly #sessions: EtcdWaiterSessions;
  readonly #writes: HoldWrites;
  readonly #batches = new Map<string, EnqueueBatch>();

  constructor(sessions: EtcdWaiterSessions, writes: HoldWrites) {
    this.#sessions = sessions;
    this.#writes = writes;
  }

  /**
   * Returns the resource as it is afterwards, without `own` if the acquisition could not be queued; `undefined` if
   * nothing happened.
   */
  enter(acquisition: Acquisition, session: EtcdWaiterSession, call: Call): Promise<HoldResult | undefined> {
    const name = batchKeyOf(acquisition.request);
    return new Promise((resolve, reject) => {
      const batch = this.#batches.get(name) ?? { newcomers: [], sending: false };
      this.#batches.set(name, batch);
      batch.newcomers.push({ acquisition, session, call, resolve, reject });
      if (!batch.sending) void this.#sendAll(name, batch);
    });
  }

  /** Never rejects: each newcomer has a promise of its own. */
  async #sendAll(name: string, batch: EnqueueBatch): Promise<void> {
    batch.sending = true;
    while (batch.newcomers.length > 0) {
      const next = batch.newcomers.splice(0, sameSession(batch.newcomers));
      const wanted = next.filter(({ acquisition, reject }) => {
        if (acquisition.ended) reject(new Error('The acquisition was abandoned before it was queued.'));
        return !acquisition.ended;
      });
      try {
        await this.#send(wanted);
      } catch (error) {
        for (const { reject } of wanted) reject(error);
      }
    }
    this.#batches.delete(name);
  }

  async #send(newcomers: readonly Newcomer[]): Promise<void> {
    const [first] = newcomers;
    if (first === undefined) return;
    const { session, call } = first;
    const acquisitions = newcomers.map(({ acquisition }) => acquisition);
    for (const acquisition of acquisitions) acquisition.session = session;
    const operations = [
      firstMatching(queueBranches(acquisitions, session, true), []),
      readEnd(first.acquisition.range),
      readMarker(session),
    ];
    const sent = await this.#writes.send(acquisitions, [], operations, call, new SendCount());
    if (sent === undefined) {
      // The transaction names only the lease of the session, so the session's lease is the one that is gone.
      this.#sessions.seen(session, undefined);
      for (const { resolve } of newcomers) resolve(undefined);
      return;
    }
    const { response } = sent;
    this.#sessions.seen(session, keysAt(response, 2)[0]);
    const entries = entriesAt(response, 1);
    const partial = isPartial(response, 1);
    for (const { acquisition, resolve } of newcomers) {
      const answer = viewAmong(entries, response, acquisition.request.acquisitionId, partial);
      if (answer.own !== undefined) acquisition.batch = acquisitions;
      resolve({ ...answer, grant: undefined });
    }
  }
}

/** Acquisitions with the same key are queued under the same conditions. */
function batchKeyOf({ resource, mode }: AcquireRequest): string {
  return `${mode.kind === 'permit' ? mode.limit : 'rw'}/${resource}`;
}

/** Returns the number of newcomers, counted from the first, that the next transaction can queue. */
function sameSession(newcomers: readonly Newcomer[]): number {
  const other = newcomers.findIndex(({ session }) => session !== newcomers[0]?.session);
  return Math.min(other < 0 ? newcomers.length : other, MOST_AT_ONCE);
}
