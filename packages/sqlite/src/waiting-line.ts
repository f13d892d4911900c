import type { AcquireRequest, Attempt, Call, Grant } from '@locks/core/backend';
import { clientAliveMs } from './line.ts';
import { type Place, Places, type Wait } from './places.ts';
import type { Steps } from './steps.ts';
import type { Transactions } from './transactions.ts';

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
  readonly #places = new Places();
  /** Whose turn it was on each resource when last seen: what changes here makes the poller quick. */
  readonly #lastSeen = new Map<string, string>();
  /** Resources that this process changed itself, which the file's version does not tell. */
  readonly #unseen = new Set<string>();
  readonly #claiming = new Set<string>();
  #waits = 0;
  #pollMs = shortestPollMs;
  #lookMs = 0;
  /** The next look is not due before. */
  #lookFrom = 0;
  #version: number | undefined;
  /** When a hold or a silent process runs out, which no version tells either. */
  #nextEventAt = 0;
  #heartbeatAt = 0;
  #heartbeatPending = false;
  /** In the file, and unknown here, at the last heartbeat: nobody's, if the next one finds them so again. */
  #strangers: readonly string[] = [];
  #timer: NodeJS.Timeout | undefined;

  constructor(transactions: Transactions, maxPollMs: number) {
    this.#transactions = transactions;
    this.#maxPollMs = maxPollMs;
  }

  /** Takes note of a committed attempt. */
  attempted(request: AcquireRequest, enqueue: boolean, outcome: Attempt): void {
    if (outcome.status === 'granted') this.left(request);
    else if (outcome.status === 'contended' && enqueue) this.#heardOf(request);
    // It may have cleared the line of those who ended.
    this.#changed(request.resource);
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
    const place = this.#places.remove(acquisitionId);
    if (place !== undefined && !this.#places.areOn(resource)) {
      this.#lastSeen.delete(resource);
      this.#unseen.delete(resource);
    }
    place?.wait?.end(grant);
    this.#changed(resource);
  }

  /** Inside a transaction that made room: lets those enter whose turn it is and who wait here. */
  serve(steps: Steps, resource: string): readonly Grant[] {
    if (!this.#places.areOn(resource)) return [];
    return steps.handOver(resource, (acquisitionId) => {
      const place = this.#places.get(acquisitionId);
      return place?.wait && { request: place.request, call: place.wait.call };
    });
  }

  /** After that transaction. */
  served(resource: string, grants: readonly Grant[]): void {
    for (const grant of grants) this.left(grant.request, grant);
    this.#changed(resource);
  }

  close(): void {
    clearTimeout(this.#timer);
    for (const place of this.#places.all()) this.left(place.request);
  }

  #heardOf(request: AcquireRequest): Place {
    // The attempt that enqueued the first one has just kept the client alive.
    if (this.#places.count === 0) this.#heartbeatAt = performance.now();
    const place = this.#places.keep(request);
    if (this.#timer === undefined) this.#schedule(heartbeatEveryMs);
    return place;
  }

  #changed(resource: string): void {
    if (this.#places.areOn(resource)) this.#unseen.add(resource);
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
    if (this.#places.count === 0) return;
    const now = performance.now();
    if (now - this.#heartbeatAt >= heartbeatEveryMs) this.#beat(now);
    this.#endOverdueWaits();
    if (this.#waits === 0) return this.#schedule(heartbeatEveryMs);
    if (now >= this.#lookFrom) this.#lookAround(now);
    const after = performance.now();
    const untilEvent = Math.max(shortestPollMs, this.#nextEventAt - after);
    const untilLook = Math.max(Math.min(this.#pollMs, untilEvent), this.#lookFrom - after);
    // However long a look takes: who gives no sign of life loses all places.
    this.#schedule(
      Math.min(untilLook, Math.max(shortestPollMs, this.#heartbeatAt + heartbeatEveryMs - after)),
    );
  }

  #lookAround(now: number): void {
    this.#pollMs = Math.min(this.#maxPollMs, this.#pollMs * pollGrowth);
    try {
      this.#transactions.look((steps, version) => this.#look(steps, version, now));
    } catch {
      // The attempts that follow these hints tell the waiters what is wrong with the file.
      for (const place of this.#places.all()) place.wait?.end(undefined);
    }
    const after = performance.now();
    // Follows upwards slowly: one look that the system interrupted says nothing about the next.
    this.#lookMs = Math.min(after - now, this.#lookMs * 1.5 + 0.01);
    this.#lookFrom = after + this.#lookMs * pausePerLook;
  }

  #look(steps: Steps, version: number, now: number): void {
    const all = version !== this.#version || now >= this.#nextEventAt;
    if (!all && this.#unseen.size === 0) return;
    const resources = all ? this.#places.resources() : [...this.#unseen];
    this.#unseen.clear();
    if (all) this.#nextEventAt = Infinity;
    for (const resource of resources) this.#lookAt(steps, resource, now);
    this.#version = version;
  }

  #lookAt(steps: Steps, resource: string, now: number): void {
    const { ready, hasEnded, changesInMs, mark } = steps.turn(resource);
    this.#nextEventAt = Math.min(this.#nextEventAt, now + changesInMs);
    // Passed over while this process stood still: attempt again.
    if (ready === undefined) this.#hint(resource);
    else if (hasEnded || ready.some((id) => this.#places.get(id)?.wait)) this.#claim(resource);
    if (this.#lastSeen.get(resource) === mark) return;
    this.#lastSeen.set(resource, mark);
    this.#pollMs = shortestPollMs;
  }

  #hint(resource: string): void {
    for (const place of this.#places.on(resource)) place.wait?.end(undefined);
  }

  #claim(resource: string): void {
    if (this.#claiming.has(resource)) return;
    this.#claiming.add(resource);
    this.#transactions
      .write(
        ownCall(),
        (steps) => this.serve(steps, resource),
        (grants) => this.served(resource, grants),
      )
      // Busy for long, or broken: an attempt will say it.
      .catch(() => this.#hint(resource))
      .finally(() => this.#claiming.delete(resource));
  }

  /** Tells the others that this process lives, and settles differences between the file and what is known here. */
  #beat(now: number): void {
    if (this.#heartbeatPending) return;
    this.#heartbeatPending = true;
    this.#heartbeatAt = now;
    const gone = new Set(this.#strangers);
    for (const { request, wait, lastHeardAt } of this.#places.all()) {
      // Core went away without a word: its entry must not block the line.
      if (wait !== undefined || now - lastHeardAt <= clientAliveMs) continue;
      gone.add(request.acquisitionId);
      this.left(request);
    }
    this.#transactions
      .write(
        ownCall(),
        (steps) => {
          const inFile = steps.heartbeat();
          for (const id of inFile) if (gone.has(id) && this.#places.get(id) === undefined) steps.dequeue(id);
          return inFile;
        },
        (inFile) => {
          this.#strangers = [...inFile].filter((id) => this.#places.get(id) === undefined);
          for (const { request, wait } of this.#places.all()) {
            if (!inFile.has(request.acquisitionId)) wait?.end(undefined);
          }
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
    for (const { wait } of this.#places.all()) {
      if (wait !== undefined && wait.call.now() >= wait.call.deadline) wait.end(undefined);
    }
  }
}

function ownCall(): Call {
  const now = (): number => performance.now();
  return { now, deadline: now() + clientAliveMs };
}
