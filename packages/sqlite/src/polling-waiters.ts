import { type AcquireRequest, type Attempt, type Call, type Grant, LocalWaiters } from '@locks/core/backend';
import { WakeFile } from '@locks/core/machine';
import type { CheckedSqliteOptions } from './options.ts';
import type { SqliteClient } from './sqlite-client.ts';
import { CLIENT_ALIVE_MS, HEARTBEAT_EVERY_MS } from './sqlite-queue.ts';
import type { Steps } from './steps.ts';
import type { Transactions } from './transactions.ts';

const MIN_POLL_MS = 1;
const POLL_GROWTH = 1.25;
/** The pause after a poll, as a multiple of its duration: polls take a twentieth of the process's time at most. */
const PAUSE_PER_POLL = 20;
/** Polls that take less do not delay a wake-up by their pause. */
const CHEAP_POLL_MS = 2;

/**
 * The waiters of one backend object and the one poller that reads the file for all of them. Waiters whose turn comes by
 * what this process does itself are served in the same transaction, without the poller.
 */
export class PollingWaiters {
  readonly #transactions: Transactions;
  readonly #maxPollMs: number;
  readonly #wakeFile: WakeFile;
  readonly #waiters = new LocalWaiters({
    pollEveryMs: HEARTBEAT_EVERY_MS,
    poll: () => this.#poll(),
    emptied: (resource) => {
      this.#lastSeen.delete(resource);
      this.#unseen.delete(resource);
    },
  });
  /** The turns on each resource at the last poll: a change here makes the poller quick. */
  readonly #lastSeen = new Map<string, string>();
  /** Resources that this process changed itself, which the file's version does not show. */
  readonly #unseen = new Set<string>();
  readonly #claiming = new Set<string>();
  #pollMs = MIN_POLL_MS;
  /** The duration of a poll, in milliseconds. */
  #pollCostMs = 0;
  /** The time before which the file is not read again. */
  #pollFrom = 0;
  #version: number | undefined;
  /** The time at which a hold expires or a silent process counts as dead, which the file's version does not show either. */
  #nextEventAt = 0;
  #heartbeatAt = 0;
  #heartbeatPending = false;
  /** Ids in the file that were unknown here at the last heartbeat; ids that the next one finds again are dropped. */
  #strangers: readonly string[] = [];

  constructor(transactions: Transactions, { path, maxPollMs }: CheckedSqliteOptions, client: SqliteClient) {
    this.#transactions = transactions;
    this.#maxPollMs = maxPollMs;
    this.#wakeFile = new WakeFile(path, client.id, () => this.#woken());
  }

  /** Records a committed attempt. */
  attempted(request: AcquireRequest, enqueue: boolean, call: Call, outcome: Attempt): void {
    if (outcome.status === 'granted') this.left(request, undefined);
    else if (outcome.status === 'contended' && enqueue) this.#register(request, call);
    // The attempt may have removed the waiters of processes that ended.
    this.#changed(request.resource);
  }

  awaitTurn(request: AcquireRequest, call: Call): Promise<Grant | undefined> {
    this.#register(request, call);
    this.#changed(request.resource);
    this.#pollSoon();
    return this.#waiters.awaitTurn(request, call);
  }

  /**
   * The acquisition no longer waits: it was granted or given up.
   *
   * @param grant - for its pending `awaitTurn`, if that granted it
   */
  left(request: AcquireRequest, grant: Grant | undefined): void {
    this.#waiters.remove(request, grant);
    this.#changed(request.resource);
  }

  /**
   * Grants to waiters of this process whose turn has come, inside a transaction, and wakes the others.
   *
   * @param isFreed - whether that transaction freed capacity
   */
  serve(steps: Steps, resource: string, isFreed: boolean): readonly Grant[] {
    const find = (acquisitionId: string) => {
      const { request, wait } = this.#waiters.get(acquisitionId) ?? {};
      return request && wait?.call && { request, call: wait.call };
    };
    return steps.handOff(resource, find, isFreed);
  }

  /** Called after the transaction in which `serve` ran. */
  served(resource: string, grants: readonly Grant[]): void {
    for (const grant of grants) this.left(grant.request, grant);
    this.#changed(resource);
  }

  close(): void {
    this.#waiters.close();
    this.#wakeFile.close();
  }

  #register(request: AcquireRequest, call: Call): void {
    // The attempt that enqueued the first waiter has just kept the client alive.
    if (this.#waiters.size === 0) {
      this.#heartbeatAt = performance.now();
      this.#wakeFile.prepare();
    }
    this.#waiters.register(request, call);
  }

  #changed(resource: string): void {
    if (this.#waiters.countOf(resource) > 0) this.#unseen.add(resource);
  }

  #pollSoon(): void {
    this.#pollMs = MIN_POLL_MS;
    this.#waiters.pollWithin(Math.max(MIN_POLL_MS, this.#pollFrom - performance.now()));
  }

  #woken(): void {
    if (this.#waiters.pending === 0) return;
    if (this.#pollCostMs < CHEAP_POLL_MS) this.#pollFrom = 0;
    this.#poll();
  }

  #poll(): void {
    const now = performance.now();
    if (now - this.#heartbeatAt >= HEARTBEAT_EVERY_MS) this.#beat(now);
    if (this.#waiters.pending === 0) return;
    const isEarly = now < this.#pollFrom;
    if (!isEarly) this.#readFile(now);
    const after = performance.now();
    const untilEvent = Math.max(MIN_POLL_MS, this.#nextEventAt - after);
    const pauseMs = isEarly ? MIN_POLL_MS : this.#wakeFile.works ? HEARTBEAT_EVERY_MS : this.#pollMs;
    this.#waiters.pollWithin(Math.max(Math.min(pauseMs, untilEvent), this.#pollFrom - after));
    // The heartbeat comes in time, however long a poll takes: a client without it loses all its waiters.
    this.#waiters.pollWithin(
      Math.max(MIN_POLL_MS, Math.ceil(this.#heartbeatAt + HEARTBEAT_EVERY_MS - after)),
    );
  }

  #readFile(now: number): void {
    this.#pollMs = Math.min(this.#maxPollMs, this.#pollMs * POLL_GROWTH);
    try {
      this.#transactions.poll((steps, version) => this.#checkAll(steps, version, now));
    } catch {
      // The attempts that follow these hints report to the waiters what is wrong with the file.
      this.#waiters.hint();
    }
    const after = performance.now();
    // The cost follows upwards slowly: one poll that the system interrupted says nothing about the next.
    this.#pollCostMs = Math.min(after - now, this.#pollCostMs * 1.5 + 0.01);
    this.#pollFrom = after + this.#pollCostMs * PAUSE_PER_POLL;
  }

  #checkAll(steps: Steps, version: number, now: number): void {
    const all = version !== this.#version || now >= this.#nextEventAt;
    if (!all && this.#unseen.size === 0) return;
    const resources = all ? this.#waiters.resources() : [...this.#unseen];
    this.#unseen.clear();
    if (all) this.#nextEventAt = Infinity;
    for (const resource of resources) this.#check(steps, resource, now);
    this.#version = version;
  }

  #check(steps: Steps, resource: string, now: number): void {
    const { ready, hasEnded, changesInMs, mark } = steps.turn(resource);
    this.#nextEventAt = Math.min(this.#nextEventAt, now + changesInMs);
    // The waiters were passed over while this process stood still: they attempt again.
    if (ready === undefined) this.#waiters.hint(resource);
    else if (hasEnded || ready.some((id) => this.#waiters.get(id)?.wait.call)) this.#claim(resource);
    if (this.#lastSeen.get(resource) === mark) return;
    this.#lastSeen.set(resource, mark);
    this.#pollMs = MIN_POLL_MS;
  }

  #claim(resource: string): void {
    if (this.#claiming.has(resource)) return;
    this.#claiming.add(resource);
    this.#transactions
      .write(
        ownCall(),
        (steps) => this.serve(steps, resource, false),
        (grants) => this.served(resource, grants),
      )
      // The file is busy for long, or broken: the attempt that follows the hint reports it.
      .catch(() => this.#waiters.hint(resource))
      .finally(() => this.#claiming.delete(resource));
  }

  /** Keeps this client alive in the file, and removes the differences between the file and the local waiters. */
  #beat(now: number): void {
    if (this.#heartbeatPending) return;
    this.#heartbeatPending = true;
    this.#heartbeatAt = now;
    const gone = new Set(this.#strangers);
    for (const { request } of this.#waiters.silentFor(CLIENT_ALIVE_MS)) {
      gone.add(request.acquisitionId);
      this.left(request, undefined);
    }
    this.#transactions
      .write(
        ownCall(),
        (steps) => {
          const inFile = steps.heartbeat();
          for (const id of inFile)
            if (gone.has(id) && this.#waiters.get(id) === undefined) steps.queue.dequeue(id);
          return inFile;
        },
        (inFile) => {
          this.#strangers = [...inFile].filter((id) => this.#waiters.get(id) === undefined);
          for (const { request, wait } of this.#waiters.all()) {
            if (!inFile.has(request.acquisitionId)) wait.end();
          }
          this.#version = undefined;
          this.#wakeFile.prepare();
        },
      )
      .catch(() => {
        // A failed heartbeat is ignored: the next one, and every attempt, tries again.
      })
      .finally(() => {
        this.#heartbeatPending = false;
      });
  }
}

function ownCall(): Call {
  const now = (): number => performance.now();
  return { now, deadline: now() + CLIENT_ALIVE_MS };
}
