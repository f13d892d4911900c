import { holdInTheWay } from '../backend/modes.ts';
import type { LockMode } from '../backend/types.ts';
import type { CircleMember } from '../errors.ts';

/** A lock that somebody waits for. */
export interface AwaitedLock {
  readonly name: string;
  readonly holders: HoldNode[];
}

/** A hold of such a lock, with the waits inside its `run`. */
export interface HoldNode {
  readonly lock: AwaitedLock;
  readonly mode: LockMode;
  readonly label: string | undefined;
  readonly waits: WaitNode[];
}

/** A wait of code inside the `run` of a hold. */
export interface WaitNode {
  /** The younger of two waits has the greater one. */
  readonly id: string;
  readonly mode: LockMode;
  readonly lock: AwaitedLock;
}

/** How a wait was reached: over a hold in the way of another wait. */
interface Step {
  readonly from: WaitNode;
  readonly over: HoldNode;
}

/**
 * The waits that nothing ends: what is left of all after those are taken out, again and again, that get their lock once the holds
 * without a wait have ended (the reduction of Holt, Some Deadlock Properties of Computer Systems, 1972). So a wait for a share or a
 * permit is left only where every way out is closed.
 */
export function deadlocked(waits: Iterable<WaitNode>): ReadonlySet<WaitNode> {
  const left = new Set(waits);
  for (let before = Number.POSITIVE_INFINITY; left.size < before; ) {
    before = left.size;
    for (const wait of left) {
      const stuck = wait.lock.holders.filter((hold) => hold.waits.some((inside) => left.has(inside)));
      if (holdInTheWay(stuck, ({ mode }) => mode, wait.mode) === undefined) left.delete(wait);
    }
  }
  return left;
}

/**
 * The circle that a wait of `left` gives up for; `undefined` where it is in none, or is not the youngest of those that wait for each
 * other: from everybody's view these are the same ones, so one of them gives up.
 */
export function circleToEnd(
  wait: WaitNode,
  left: ReadonlySet<WaitNode>,
): readonly CircleMember[] | undefined {
  const reached = reachedFrom(wait, left);
  if (!reached.has(wait)) return undefined;
  for (const other of reached.keys()) {
    if (other.id > wait.id && reachedFrom(other, left).has(wait)) return undefined;
  }
  const circle: CircleMember[] = [];
  for (let at = wait; circle.length === 0 || at !== wait; ) {
    const { from, over } = reached.get(at) as Step;
    circle.push({ name: over.lock.name, label: over.label, waitsFor: at.lock.name });
    at = from;
  }
  // The path was followed from its end, which is the waiting code's own hold.
  const [own, ...others] = circle as [CircleMember, ...CircleMember[]];
  return [own, ...others.toReversed()];
}

/** The waits that a wait waits for, directly and over others, with the shortest way to each; itself where it is in a circle. */
function reachedFrom(start: WaitNode, left: ReadonlySet<WaitNode>): Map<WaitNode, Step> {
  const reached = new Map<WaitNode, Step>();
  const follow = (from: WaitNode): void => {
    for (const over of from.lock.holders) {
      if (over.mode.kind === 'shared' && from.mode.kind === 'shared') continue;
      for (const wait of over.waits)
        if (left.has(wait) && !reached.has(wait)) reached.set(wait, { from, over });
    }
  };
  follow(start);
  // The map grows while it is read.
  for (const wait of reached.keys()) if (wait !== start) follow(wait);
  return reached;
}
