import { isAcquisitionId } from '../acquire/acquisition-id.ts';
import type { Holder } from '../backend/types.ts';
import type { ManagerCore } from '../manager-core.ts';
import { WAIT_NAMES } from '../names.ts';
import { readableHolder } from '../readable-state.ts';
import { ELSEWHERE, type ToldWait, toldBy } from './told-wait.ts';
import type { HoldNode, AwaitedLock, WaitNode } from './wait-graph.ts';

/** The most requests of one reading. */
const MAX_READS = 32;
/** The most waits that one reading follows: what is done with them grows faster than their number. */
const MAX_WAITS = 256;

/** A lock, in the store of a manager. */
export interface LockPlace {
  readonly core: ManagerCore;
  readonly name: string;
}

/** Where a reading begins, and what it need not ask the store for. */
export interface GraphSource {
  readonly locks: Iterable<LockPlace>;
  /** The waits of this process inside of a hold; empty where it knows of none. */
  ownWaits(holdId: string): readonly (ToldWait & { readonly core: ManagerCore })[];
  /** All managers of this process whose stores may tell of a wait. */
  managers(): Iterable<ManagerCore>;
}

/** Who waits for whom, as far as it could be read. */
export interface ReadGraph {
  readonly waits: ReadonlyMap<string, WaitNode>;
  readonly facts: Facts;
}

/** What was read of holds, and of waits inside of them; of an edge, the time at which it ends unless it is kept, where the store knows. */
type Facts = ReadonlyMap<string, number | undefined>;

/**
 * Follows the holders of locks, and what they wait for.
 *
 * What one reading sees may never have been true at one time. What two readings see, one after the other, was true between them: an id
 * holds once, and a wait ends once. The second one drops what the first one did not see, and the edges that nobody has kept since: their
 * process may be dead, and its holds end by themselves (docs/spec.md §5.10).
 *
 * @param known - the facts of the first reading
 */
export async function readGraph(source: GraphSource, known?: Facts): Promise<ReadGraph> {
  const locks = new Map<ManagerCore, Map<string, AwaitedLock>>();
  const waits = new Map<string, WaitNode>();
  const facts = new Map<string, number | undefined>();
  const toRead: { readonly core: ManagerCore; readonly lock: AwaitedLock }[] = [];
  let reads = 0;

  const lockOf = ({ core, name }: LockPlace): AwaitedLock => {
    const ofStore = locks.get(core) ?? new Map<string, AwaitedLock>();
    locks.set(core, ofStore);
    let lock = ofStore.get(name);
    if (lock === undefined) {
      lock = { name, holders: [] };
      ofStore.set(name, lock);
      toRead.push({ core, lock });
    }
    return lock;
  };
  const isFact = (fact: string, endsAt?: number, keptMs = 0): boolean => {
    if (known?.has(fact) === false) return false;
    const before = known?.get(fact);
    if (before !== undefined && endsAt !== undefined && endsAt - before < keptMs) return false;
    facts.set(fact, endsAt);
    return true;
  };
  const holdersOf = async (core: ManagerCore, name: string): Promise<readonly Holder[]> => {
    if (reads >= MAX_READS) return [];
    reads += 1;
    const { holders } = await core.ask('inspect', name, (call) =>
      core.backend.inspect(name, call, { waiters: false }),
    );
    return holders.map(readableHolder);
  };
  const addWait = (
    hold: HoldNode,
    holdId: string,
    core: ManagerCore,
    told: ToldWait,
    expiresInMs?: number,
  ): void => {
    if (waits.size >= MAX_WAITS && !waits.has(told.id)) return;
    const endsAt = expiresInMs === undefined ? undefined : core.now() + expiresInMs;
    if (!isFact(`${holdId} ${told.id}`, endsAt, core.deadlockAfterMs / 4)) return;
    const { id, mode, name } = told;
    const wait = waits.get(id) ?? { id, mode, lock: lockOf({ core, name }) };
    waits.set(id, wait);
    hold.waits.push(wait);
  };
  const readWaits = async (core: ManagerCore, hold: HoldNode, holdId: string): Promise<void> => {
    const own = source.ownWaits(holdId);
    for (const told of own) addWait(hold, holdId, told.core, told);
    if (own.length > 0) return;
    // Another program's hold tells of no wait, and its id may be too long for a name.
    if (!isAcquisitionId(holdId)) return;
    const readIn = async (store: ManagerCore): Promise<readonly Holder[]> => {
      const edges = await holdersOf(store, WAIT_NAMES + holdId);
      for (const { label, expiresInMs } of edges) {
        const told = toldBy(label);
        if (told !== undefined) addWait(hold, holdId, store, told, expiresInMs);
      }
      return edges;
    };
    const edges = await readIn(core);
    if (edges.every(({ label }) => label !== ELSEWHERE)) return;
    for (const other of source.managers()) if (other !== core) await readIn(other);
  };

  for (const place of source.locks) lockOf(place);
  // The list grows while it is read.
  for (const { core, lock } of toRead) {
    for (const { acquisitionId, mode, label } of await holdersOf(core, lock.name)) {
      if (!isFact(`${acquisitionId} ${JSON.stringify(mode)}`)) continue;
      const hold: HoldNode = { lock, mode, label, waits: [] };
      lock.holders.push(hold);
      await readWaits(core, hold, acquisitionId);
    }
  }
  return { waits, facts };
}
