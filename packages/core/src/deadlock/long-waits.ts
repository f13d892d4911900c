import { shownId } from '../acquire/acquisition-id.ts';
import type { LockMode } from '../backend/types.ts';
import { ManagerCore } from '../manager-core.ts';
import { heldAround, type RunFrame } from '../scope/context.ts';
import { deadlockError } from './deadlock-error.ts';
import { type GraphSource, readGraph } from './read-graph.ts';
import { ELSEWHERE, labelOf, type ToldWait, waitId } from './told-wait.ts';
import { WaitEdges } from './wait-edges.ts';
import { circleToEnd, deadlocked } from './wait-graph.ts';

export { readChain } from './timeout-chain.ts';

/** The pause before each of the second readings of a circle, in periods of the watch. */
const PAUSE_PERIODS = 1 / 4;
/** How often a circle is read again. In that time every process that lives keeps its edges. */
const SECOND_READINGS = 9;
/** How many locks a reading follows for certain, at two reads each. */
const LOCKS_OF_A_READING = 16;

/** A wait of code that runs inside a `run`. */
export interface LeaseWait {
  readonly core: ManagerCore;
  readonly resource: string;
  readonly mode: LockMode;
  /** The id under which the store first answered `contended`. */
  readonly acquisitionId: string;
  /** What the waiting code runs inside of. */
  readonly frame: RunFrame;
  /** Ends the wait with an error. */
  readonly giveUp: (error: unknown) => void;
}

interface LongWait extends ToldWait {
  readonly core: ManagerCore;
  readonly holdIds: readonly string[];
  readonly giveUp: (error: unknown) => void;
}

/** The watches of all managers that have had a long wait: each remembers when it last asked its store. */
const watches = new WeakMap<ManagerCore, Watch>();
/** The managers that take part now: those with long waits, and those whose leases are around such waits. */
const active = new Set<ManagerCore>();

function watchOf(core: ManagerCore): Watch {
  const watch = watches.get(core) ?? new Watch(core);
  watches.set(core, watch);
  active.add(core);
  return watch;
}

/**
 * Publishes that a wait goes on, and looks for circles that it is in, until the returned function is called.
 *
 * @param waitedMs - how long the wait has lasted
 */
export function watchWait(wait: LeaseWait, waitedMs: number): () => void {
  const { core, resource: name, mode, acquisitionId, frame, giveUp } = wait;
  const leases = new Set(heldAround(frame));
  // Nobody can wait for code that holds nothing.
  if (leases.size === 0) return () => {};
  // The wall clock orders the waits of several machines: a clock that is wrong makes another wait the youngest, from everybody's view.
  const id = waitId(Date.now() - waitedMs, acquisitionId);
  const holdIds = [...leases].map(({ grant }) => shownId(grant.request.acquisitionId));
  const longWait: LongWait = { id, mode, name, core, holdIds, giveUp };
  const watch = watchOf(core);
  const ends = [watch.addWait(longWait)];
  const label = labelOf(longWait);
  if (label !== undefined) {
    for (const [index, lease] of [...leases].entries()) {
      const holdId = holdIds[index] as string;
      ends.push(watch.addEdge(holdId, label));
      const { owner } = lease;
      // The manager of another copy of core may be of another version.
      if (owner !== core && owner instanceof ManagerCore)
        ends.push(watchOf(owner).addEdge(holdId, ELSEWHERE));
    }
  }
  return () => {
    for (const end of ends) end();
  };
}

/** What one manager does for waits that last long: once in each period one write, and then the readings. */
class Watch implements GraphSource {
  readonly #core: ManagerCore;
  readonly #edges: WaitEdges;
  readonly #waits = new Map<string, LongWait>();
  readonly #waitsOfHold = new Map<string, Set<LongWait>>();
  #lastAt = Number.NEGATIVE_INFINITY;
  #isUnderWay = false;
  #isReading = false;
  #cancelNext: (() => void) | undefined;
  /** The number of readings: each begins with other locks, since none follows all where there are very many. */
  #readings = 0;

  constructor(core: ManagerCore) {
    this.#core = core;
    this.#edges = new WaitEdges(core);
  }

  addWait(wait: LongWait): () => void {
    this.#waits.set(wait.id, wait);
    for (const id of wait.holdIds) {
      const ofHold = this.#waitsOfHold.get(id) ?? new Set();
      this.#waitsOfHold.set(id, ofHold.add(wait));
    }
    this.#plan();
    return () => {
      this.#waits.delete(wait.id);
      for (const id of wait.holdIds) {
        const ofHold = this.#waitsOfHold.get(id);
        ofHold?.delete(wait);
        if (ofHold?.size === 0) this.#waitsOfHold.delete(id);
      }
      this.#endIfIdle();
    };
  }

  addEdge(holdId: string, label: string): () => void {
    const takeBack = this.#edges.add(holdId, label);
    this.#plan();
    return () => {
      takeBack();
      this.#endIfIdle();
    };
  }

  get locks(): Iterable<{ core: ManagerCore; name: string }> {
    const names = new Set([...this.#waits.values()].map(({ name }) => name));
    return this.#inTurn(names).map((name) => ({ core: this.#core, name }));
  }

  ownWaits(holdId: string): readonly LongWait[] {
    return this.#inTurn(this.#waitsOfHold.get(holdId) ?? []);
  }

  /** The items, each near the beginning in one of the readings. */
  #inTurn<T>(items: Iterable<T>): readonly T[] {
    const all = [...items];
    const first = (this.#readings * LOCKS_OF_A_READING) % Math.max(all.length, 1);
    return [...all.slice(first), ...all.slice(0, first)];
  }

  managers(): Iterable<ManagerCore> {
    return active;
  }

  #plan(): void {
    if (this.#isUnderWay || this.#cancelNext !== undefined) return;
    const { deadlines, deadlockAfterMs } = this.#core;
    const at = Math.max(this.#core.now(), this.#lastAt + deadlockAfterMs);
    this.#cancelNext = deadlines.at(at, () => void this.#look());
  }

  #endIfIdle(): void {
    if (this.#waits.size > 0 || !this.#edges.isEmpty) return;
    this.#cancelNext?.();
    this.#cancelNext = undefined;
    active.delete(this.#core);
  }

  async #look(): Promise<void> {
    this.#cancelNext = undefined;
    this.#isUnderWay = true;
    this.#lastAt = this.#core.now();
    // A store that fails is asked again in the next period.
    await this.#edges.write().catch(() => {});
    if (!this.#isReading && this.#waits.size > 0) {
      this.#isReading = true;
      void this.#endCircles()
        .catch(() => {})
        .finally(() => (this.#isReading = false));
    }
    this.#isUnderWay = false;
    if (this.#waits.size > 0 || !this.#edges.isEmpty) this.#plan();
  }

  async #endCircles(): Promise<void> {
    this.#readings += 1;
    const { waits, facts } = await readGraph(this);
    if (this.#circles(waits).length === 0) return;
    for (let count = 0; count < SECOND_READINGS; count += 1) {
      await this.#pause();
      const again = await readGraph(this, facts);
      const circles = this.#circles(again.waits);
      for (const { wait, circle } of circles) wait.giveUp(deadlockError(this.#core, wait.name, circle));
      if (circles.length > 0) return;
    }
  }

  #pause(): Promise<void> {
    const { deadlines, deadlockAfterMs } = this.#core;
    return new Promise((resolve) => {
      deadlines.at(this.#core.now() + deadlockAfterMs * PAUSE_PERIODS, resolve);
    });
  }

  /** The waits of this manager that give up, with the circles for which they do. */
  #circles(waits: Awaited<ReturnType<typeof readGraph>>['waits']) {
    const left = deadlocked(waits.values());
    return [...left].flatMap((node) => {
      const wait = this.#waits.get(node.id);
      const circle = wait && circleToEnd(node, left);
      return wait === undefined || circle === undefined ? [] : [{ wait, circle }];
    });
  }
}
