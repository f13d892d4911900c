import type { AcquireRequest, Call, Grant } from '@locks/core/backend';
import { type AttemptStep, clientAliveMs, type Steps } from './steps.ts';
import type { Transactions } from './transactions.ts';

/** A waiter of this process, from the attempt that put it into the line to its grant or its end. */
interface Place {
  readonly request: AcquireRequest;
  /** Present while core sits in `awaitTurn`. */
  wait: Wait | undefined;
  /** When core was last heard of, on `performance.now()`. */
  lastHeardAt: number;
}

interface Wait {
  readonly call: Call;
  readonly end: (grant: Grant | undefined) => void;
}

const heartbeatEveryMs = 500;
const shortestPollMs = 1;
const pollGrowth = 1.25;
/** A look may take one part in twenty of the process's time at most. */
const pausePerLook = 20;

/**
 * The waiters of one backend object and the one poller that looks at the file for all of them. Waiters whose turn
 * comes by what this process does itself are served in the same transaction, without the poller.
 */
export class WaitingLine {
  readonly #transactions: Transactions;
  readonly #maxPollMs: number;
  readonly #places = new Map<string, Place>();
  readonly #byResource = new Map<string, Set<Place>>();
  /** Who held each resource or was next when last seen: what changes here makes the poller quick. */
  readonly #lastSeen = new Map<string, string>();
  /** Resources that this process changed itself, which the file's version does not tell. */
  readonly #unseen = new Set<string>();
  readonly #claiming = new Set<string>();
  #waits = 0;
  #pollMs = shortestPollMs;
  #lookMs = 0;
  #version: number | undefined;
  /** When a hold or a silent process runs out, which no version tells either. */
  #nextEventAt = 0;
  #heartbeatAt = 0;
  #heartbeatPending = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(transactions: Transactions, maxPollMs: number) {
    this.#transactions = transactions;
    this.#maxPollMs = maxPollMs;
  }

  /** Takes note of a committed attempt. */
  attempted(request: AcquireRequest, outcome: AttemptStep): void {
    if (outcome.status === 'granted') this.left(request);
    else if (outcome.enqueued) this.#heardOf(request);
  }

  awaitTurn(request: AcquireRequest, call: Call): Promise<Grant | undefined> {
    return new Promise((resolve) => {
      const place = this.#heardOf(request);
      place.wait?.end(undefined);
      const { signal } = call;
      const end = (grant: Grant | undefined): void => {
        if (place.wait !== wait) return;
        place.wait = undefined;
        place.lastHeardAt = performance.now();
        this.#waits -= 1;
        signal?.removeEventListener('abort', onAbort);
        resolve(grant);
      };
      const onAbort = (): void => end(undefined);
      const wait: Wait = { call, end };
      place.wait = wait;
      this.#waits += 1;
      if (signal?.aborted) return end(undefined);
      signal?.addEventListener('abort', onAbort);
      this.#changed(request.resource);
      this.#pollSoon();
    });
  }

  /** The acquisition neither waits nor will: it was granted or given up. */
  left(request: AcquireRequest, grant?: Grant): void {
    const { resource, acquisitionId } = request;
    const place = this.#places.get(acquisitionId);
    if (place !== undefined) {
      this.#places.delete(acquisitionId);
      const neighbours = this.#byResource.get(resource);
      neighbours?.delete(place);
      if (neighbours?.size === 0) {
        this.#byResource.delete(resource);
        this.#lastSeen.delete(resource);
        this.#unseen.delete(resource);
      }
      place.wait?.end(grant);
    }
    this.#changed(resource);
  }

  /** Inside a transaction that freed a resource or shortened its line: serves the next one if it waits here. */
  serveNext(steps: Steps, resource: string): Grant | undefined {
    if (!this.#byResource.has(resource)) return undefined;
    return steps.handOver(resource, (acquisitionId) => {
      const place = this.#places.get(acquisitionId);
      return place?.wait && { request: place.request, call: place.wait.call };
    });
  }

  /** After that transaction. */
  served(resource: string, grant: Grant | undefined): void {
    if (grant === undefined) this.#changed(resource);
    else this.left(grant.request, grant);
  }

  close(): void {
    clearTimeout(this.#timer);
    for (const place of [...this.#places.values()]) this.left(place.request);
  }

  #heardOf(request: AcquireRequest): Place {
    let place = this.#places.get(request.acquisitionId);
    if (place === undefined) {
      place = { request, wait: undefined, lastHeardAt: 0 };
      // The attempt that enqueued it has just kept the client alive.
      if (this.#places.size === 0) this.#heartbeatAt = performance.now();
      this.#places.set(request.acquisitionId, place);
      const neighbours = this.#byResource.get(request.resource);
      if (neighbours === undefined) this.#byResource.set(request.resource, new Set([place]));
      else neighbours.add(place);
      if (this.#timer === undefined) this.#schedule(heartbeatEveryMs);
    }
    place.lastHeardAt = performance.now();
    return place;
  }

  #changed(resource: string): void {
    if (this.#byResource.has(resource)) this.#unseen.add(resource);
  }

  #pollSoon(): void {
    if (this.#pollMs === shortestPollMs && this.#timer?.hasRef()) return;
    this.#pollMs = shortestPollMs;
    this.#schedule(shortestPollMs);
  }

  #schedule(delayMs: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#tick(), delayMs);
    // Only a waiting acquire keeps the process alive.
    if (this.#waits === 0) this.#timer.unref();
  }

  #tick(): void {
    this.#timer = undefined;
    if (this.#places.size === 0) return;
    const now = performance.now();
    if (now - this.#heartbeatAt >= heartbeatEveryMs) this.#beat(now);
    this.#endOverdueWaits();
    if (this.#waits === 0) return this.#schedule(heartbeatEveryMs);
    this.#pollMs = Math.min(this.#maxPollMs, this.#pollMs * pollGrowth);
    try {
      this.#transactions.look((steps, version) => this.#look(steps, version, now));
    } catch {
      // The attempts that follow these hints tell the waiters what is wrong with the file.
      for (const place of this.#places.values()) place.wait?.end(undefined);
    }
    const after = performance.now();
    // Follows upwards slowly: one look that the system interrupted says nothing about the next.
    this.#lookMs = Math.min(after - now, this.#lookMs * 1.5 + 0.01);
    const untilEvent = Math.max(shortestPollMs, this.#nextEventAt - after);
    this.#schedule(Math.max(Math.min(this.#pollMs, untilEvent), this.#lookMs * pausePerLook));
  }

  #look(steps: Steps, version: number, now: number): void {
    const all = version !== this.#version || now >= this.#nextEventAt;
    if (!all && this.#unseen.size === 0) return;
    const resources = all ? [...this.#byResource.keys()] : [...this.#unseen];
    this.#unseen.clear();
    if (all) this.#nextEventAt = Infinity;
    for (const resource of resources) this.#lookAt(steps, resource, now);
    this.#version = version;
  }

  #lookAt(steps: Steps, resource: string, now: number): void {
    const turn = steps.turn(resource);
    let seen = '';
    switch (turn.status) {
      case 'held':
        this.#nextEventAt = Math.min(this.#nextEventAt, now + turn.forMs);
        seen = turn.by;
        break;
      case 'free':
        this.#nextEventAt = Math.min(this.#nextEventAt, now + turn.aliveForMs);
        seen = turn.next;
        if (turn.nextHasEnded || this.#places.get(turn.next)?.wait !== undefined) this.#claim(resource);
        break;
      case 'nobody-waits':
        // Passed over while this process stood still: attempt again.
        for (const place of this.#byResource.get(resource) ?? []) place.wait?.end(undefined);
        break;
      default:
        turn satisfies never;
    }
    if (this.#lastSeen.get(resource) === seen) return;
    this.#lastSeen.set(resource, seen);
    this.#pollMs = shortestPollMs;
  }

  #claim(resource: string): void {
    if (this.#claiming.has(resource)) return;
    this.#claiming.add(resource);
    this.#transactions
      .write(
        ownCall(),
        (steps) => this.serveNext(steps, resource),
        (grant) => this.served(resource, grant),
      )
      .catch(() => {
        // Busy for long, or broken: an attempt will say it.
        for (const place of this.#byResource.get(resource) ?? []) place.wait?.end(undefined);
      })
      .finally(() => this.#claiming.delete(resource));
  }

  /** Tells the others that this process lives, and settles differences between the file and what is known here. */
  #beat(now: number): void {
    if (this.#heartbeatPending) return;
    this.#heartbeatPending = true;
    this.#heartbeatAt = now;
    for (const place of [...this.#places.values()]) {
      // Core went away without a word: its entry must not block the line.
      if (place.wait === undefined && now - place.lastHeardAt > clientAliveMs) this.left(place.request);
    }
    this.#transactions
      .write(
        ownCall(),
        (steps) => {
          const inFile = steps.heartbeat();
          for (const id of inFile) if (!this.#places.has(id)) steps.dequeue(id);
          return inFile;
        },
        (inFile) => {
          for (const [id, place] of this.#places) if (!inFile.has(id)) place.wait?.end(undefined);
          this.#version = undefined;
        },
      )
      .catch(() => {
        // The next beat, and every attempt, tries again.
      })
      .finally(() => {
        this.#heartbeatPending = false;
      });
  }

  #endOverdueWaits(): void {
    for (const { wait } of this.#places.values()) {
      if (wait !== undefined && wait.call.now() >= wait.call.deadline) wait.end(undefined);
    }
  }
}

function ownCall(): Call {
  const now = (): number => performance.now();
  return { now, deadline: now() + clientAliveMs };
}
