import type { Call } from '@locks/core/backend';
import type { Acquisition } from './acquisition.ts';
import { type Acquisitions, byResource } from './acquisitions.ts';
import type { AttemptOutcome, Free } from './attempt-outcome.ts';
import type { Claims } from './claims.ts';
import { read, readHead } from './conditions.ts';
import type { EtcdPort } from './etcd-port.ts';
import { positionOf, QueueTurns } from './queue-turns.ts';
import type { ClaimBasis } from './txn-branches.ts';
import { headAt, revisionOf } from './txn-responses.ts';

const READ_MS = 3_000;
const CHECK_EVERY_MS = 5_000;
const RETRY_MS = 500;
/** The number of waiters of one resource above which the periodic check reads only the head of the queue. */
const MANY = 200;
/** The pause after a check of many waiters, as a multiple of its duration. */
const PAUSE_FACTOR = 3;
/**
 * The most grants of one transaction: each needs a read, a conditional write and a condition, and a server accepts 128
 * operations.
 */
const GRANTS_AT_ONCE = 40;

/** What follows from a check. */
export interface CheckListener {
  /** The acquisition claims by itself: its turn has come, or its entry is gone. */
  claim(acquisition: Acquisition, basis: ClaimBasis): void;
  /** The acquisition was granted, or is blocked. */
  finish(acquisition: Acquisition, outcome: AttemptOutcome): void;
}

/** Checks of the waiters of this process: reads their queues, and grants those whose turn has come. */
export class QueueChecks {
  readonly #port: EtcdPort;
  readonly #claims: Claims;
  readonly #acquisitions: Acquisitions;
  readonly #listener: CheckListener;
  #checkedAt = 0;
  /** The waiters that the next check reads: their entries may be gone, or their turn may have come. */
  readonly #toCheck = new Set<Acquisition>();
  #scheduled: NodeJS.Immediate | NodeJS.Timeout | undefined;
  #checking = false;

  constructor(port: EtcdPort, claims: Claims, acquisitions: Acquisitions, listener: CheckListener) {
    this.#port = port;
    this.#claims = claims;
    this.#acquisitions = acquisitions;
    this.#listener = listener;
  }

  /** Schedules a check. All waiters of one iteration of the event loop share it, and checks do not overlap. */
  soon(acquisition: Acquisition): void {
    this.#toCheck.add(acquisition);
    if (!this.#checking) this.#scheduled ??= setImmediate(() => void this.#checkScheduled());
  }

  /** Checks waiters of one resource. */
  async now(waiters: readonly Acquisition[]): Promise<void> {
    await this.#check([waiters], 'whole queues');
  }

  /** Checks all waiters now and then, in case a message was lost. One request serves a hundred resources. */
  periodically(): void {
    const now = performance.now();
    if (now < this.#checkedAt + CHECK_EVERY_MS) return;
    this.#checkedAt = now;
    for (const groups of byResource(this.#acquisitions.all())) {
      this.#check(groups, 'heads of long queues').catch(() => {
        // A failed check is ignored: the next periodic check, or core's own attempt after a while, repeats it.
      });
    }
  }

  close(): void {
    clearImmediate(this.#scheduled as NodeJS.Immediate | undefined);
    clearTimeout(this.#scheduled as NodeJS.Timeout | undefined);
    this.#toCheck.clear();
  }

  async #checkScheduled(): Promise<void> {
    this.#scheduled = undefined;
    this.#checking = true;
    const startedAt = performance.now();
    // The server reports one deletion to several watches in any order: all readers of a resource are checked together, or
    // they would be granted out of order.
    const resources = new Set([...this.#toCheck].map(({ request }) => request.resource));
    for (const each of this.#acquisitions.all()) {
      const { mode, resource } = each.request;
      if (mode.kind === 'shared' && each.position !== undefined && resources.has(resource))
        this.#toCheck.add(each);
    }
    const waiters = [...this.#toCheck];
    this.#toCheck.clear();
    let failed = false;
    for (const groups of byResource(waiters)) {
      await this.#check(groups, 'whole queues').catch(() => {
        failed = true;
        for (const acquisition of groups.flat()) this.#toCheck.add(acquisition);
      });
    }
    this.#checking = false;
    if (this.#toCheck.size === 0) return;
    // A long queue takes long to read, so it is not read continuously.
    const pauseMs = waiters.length > MANY ? PAUSE_FACTOR * (performance.now() - startedAt) : 0;
    this.#scheduled = setTimeout(() => void this.#checkScheduled(), failed ? RETRY_MS : pauseMs).unref();
  }

  /**
   * Reads the entries of resources, one group of waiters each. Those whose turn has come or whose entry is gone claim; the others
   * watch what blocks them.
   */
  async #check(
    groups: readonly (readonly Acquisition[])[],
    extent: 'whole queues' | 'heads of long queues',
  ): Promise<void> {
    const isHead = groups.map((group) => extent !== 'whole queues' && group.length > MANY);
    const reads = groups.map(([any], index) => {
      const { range } = any as Acquisition;
      return isHead[index] === true ? readHead(range) : read(range);
    });
    const call = ownCall(READ_MS);
    const response = await this.#port.run(reads, call);
    const revision = revisionOf(response);
    for (const [index, group] of groups.entries()) {
      const turns = new QueueTurns(headAt(response, index));
      this.#checkGroup(group, turns, isHead[index] === true, revision, call);
    }
  }

  #checkGroup(
    group: readonly Acquisition[],
    turns: QueueTurns,
    isHead: boolean,
    revision: number,
    call: Call,
  ): void {
    const together = new Map<Acquisition, Free>();
    for (const member of group) {
      if (member.position === undefined || member.ended) continue;
      // A waiter beyond the head is blocked; those ahead of it will wake it.
      if (isHead && turns.entryOf(member.request.acquisitionId) === undefined) continue;
      const { kind } = member.request.mode;
      const status = this.#claims.statusOf(member, turns, revision, call);
      switch (status.status) {
        case 'free':
          if (kind === 'shared' || (kind === 'permit' && !isHead)) together.set(member, status);
          // A hold that was stolen may be beyond the head of a long queue: the claim reads the queue itself.
          else
            this.#listener.claim(member, isHead ? { type: 'unread' } : { type: 'free', asOf: status.asOf });
          break;
        case 'not-queued':
          this.#listener.claim(member, { type: 'unread' });
          break;
        case 'blocked':
          this.#listener.finish(member, status);
          break;
        default:
          status satisfies never;
      }
    }
    void this.#claimTogether(together);
  }

  /** Grants readers, or permits, whose turn has come in queue order, many in one transaction. Never rejects. */
  async #claimTogether(turns: ReadonlyMap<Acquisition, Free>): Promise<void> {
    const ordered = [...turns.keys()].toSorted((a, b) => orderOf(a) - orderOf(b));
    const waiting: Acquisition[] = [];
    for (const each of ordered) {
      if (each.wait.call === undefined || each.busy)
        this.#listener.claim(each, { type: 'free', asOf: turns.get(each)?.asOf });
      else waiting.push(each);
    }
    // Each waiter stays busy until all are done: a second check must not wake one that is being granted.
    let markDone = (): void => {};
    const done = new Promise<void>((resolve) => (markDone = resolve));
    for (const each of waiting) void each.serialized(() => done);
    const calls = new Map(waiting.flatMap((each) => (each.wait.call ? [[each, each.wait.call]] : [])));
    const rest: Acquisition[] = [];
    for (let start = 0; start < waiting.length; start += GRANTS_AT_ONCE) {
      const now = waiting.slice(start, start + GRANTS_AT_ONCE);
      try {
        const grants = await this.#claims.claimTogether(now, calls, turns);
        for (const each of now) {
          const grant = grants.get(each);
          if (grant === undefined) rest.push(each);
          else this.#listener.finish(each, { status: 'granted', grant });
        }
      } catch (error) {
        for (const each of now) each.wait.fail(error);
      }
    }
    markDone();
    for (const each of rest) this.#listener.claim(each, { type: 'unread' });
  }
}

/** A call of this backend itself, which core does not know of. */
export function ownCall(ms: number): Call {
  return { now: () => performance.now(), deadline: performance.now() + ms };
}

function orderOf({ position }: Acquisition): number {
  return position === undefined ? Number.POSITIVE_INFINITY : positionOf(position);
}
