import type { LockEvent } from '@locks/core';

interface Moment {
  readonly token: bigint;
  readonly at: number;
  /** In which iteration of the event loop it became known. */
  readonly iteration: number;
}

/**
 * Measures the gap between a release and the grant that follows it, where both happen in this process and nobody else held in
 * between. That is known where the grant has the next token, and where it came while the release was under way, or with its
 * answer: in the same iteration of the event loop, however long a busy machine lets that take. Another process may have held
 * before any other grant, so these are left out.
 */
export class HandOffs {
  readonly #record: (gapMs: number, of: LockEvent) => void;
  /** The number of waiting acquires of this process, by name. */
  readonly #waiting = new Map<string, number>();
  /** The last release of a name for which others wait. */
  readonly #releases = new Map<string, Moment>();
  /** The last grant after a wait, until its lease ends. */
  readonly #grants = new Map<string, Moment>();
  #iteration = 0;
  #isCounted = false;

  constructor(record: (gapMs: number, of: LockEvent) => void) {
    this.#record = record;
  }

  waits(of: LockEvent): void {
    const key = keyOf(of);
    this.#waiting.set(key, (this.#waiting.get(key) ?? 0) + 1);
  }

  /** Notes that an acquire waits no more: it was granted, or gave up. */
  waitsNoMore(of: LockEvent): void {
    const key = keyOf(of);
    const others = (this.#waiting.get(key) ?? 1) - 1;
    if (others > 0) this.#waiting.set(key, others);
    else {
      this.#waiting.delete(key);
      this.#releases.delete(key);
    }
  }

  /** Notes the grant of an acquire that had waited. To be called before `waitsNoMore`. */
  granted(of: LockEvent, token: bigint): void {
    const key = keyOf(of);
    const at = performance.now();
    const release = this.#releases.get(key);
    this.#releases.delete(key);
    const iteration = this.#currentIteration();
    if (release !== undefined && (token === release.token + 1n || iteration === release.iteration))
      this.#record(at - release.at, of);
    else this.#grants.set(key, { token, at, iteration });
  }

  /** Notes the answer to a release. */
  released(of: LockEvent, token: bigint, tookMs: number): void {
    if (this.#waiting.size === 0 && this.#grants.size === 0) return;
    const key = keyOf(of);
    const at = performance.now() - tookMs;
    const iteration = this.#currentIteration();
    const next = this.#grants.get(key);
    if (next !== undefined && next.token !== token && (next.at >= at || next.iteration === iteration)) {
      this.#grants.delete(key);
      this.#record(next.at - at, of);
      return;
    }
    if (this.#waiting.has(key)) this.#releases.set(key, { token, at, iteration });
  }

  /** Notes the end of a lease, of any kind: its grant is of no more use. */
  ended(of: LockEvent, token: bigint): void {
    if (this.#grants.size === 0) return;
    const key = keyOf(of);
    if (this.#grants.get(key)?.token === token) this.#grants.delete(key);
  }

  #currentIteration(): number {
    if (!this.#isCounted) {
      this.#isCounted = true;
      this.#iteration += 1;
      setImmediate(() => (this.#isCounted = false));
    }
    return this.#iteration;
  }
}

function keyOf({ backend, name }: LockEvent): string {
  return `${backend} ${name}`;
}
