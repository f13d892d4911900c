import type { LockBackend } from '@locks/core';
import { SeededRandom } from '../kernel/seeded-random.ts';
import type { World } from '../kernel/world.ts';
import type { Link, StoreNode } from '../network/link.ts';
import type { LoadedLocks, LockCode } from '../process/lock-code.ts';
import { SimulatedProcess } from '../process/simulated-process.ts';
import type { Plan } from '../workload/plan.ts';
import { RulesBackend } from './rules-backend.ts';
import { RulesStore } from './rules-store.ts';

/** A store outside of all processes, as a run uses it. */
export interface SimulatedStore extends StoreNode {
  goAway(ms: number): void;
  /** The backend by which a process uses the store. */
  backendIn(process: SimulatedProcess, link: Link, loaded: LoadedLocks): LockBackend;
  isEmpty(): boolean;
  /** What it keeps, of everybody or of one participant, in words. */
  leftovers(label?: string): string[];
}

export function makeStores(world: World, code: LockCode, plan: Plan): SimulatedStore[] {
  // The rules run in a process of their own.
  const { LockRules } = code.serverCode(
    () =>
      new SimulatedProcess(world, new SeededRandom(0), {
        name: 'store',
        drift: 0,
        wallOffset: 0,
        timerLatenessMs: 0,
      }),
  );
  return plan.storeDrifts.map((drift, index) => {
    const name = plan.storeDrifts.length === 1 ? 'store' : `store${index}`;
    return new NetworkedRules(new RulesStore(world, name, drift, LockRules));
  });
}

class NetworkedRules implements SimulatedStore {
  readonly #store: RulesStore;
  readonly name: string;

  constructor(store: RulesStore) {
    this.#store = store;
    this.name = store.name;
  }

  get isAway(): boolean {
    return this.#store.isAway;
  }

  goAway(ms: number): void {
    this.#store.goAway(ms);
  }

  backendIn(process: SimulatedProcess, link: Link): LockBackend {
    return new RulesBackend(process, link, this.#store, process.name);
  }

  isEmpty(): boolean {
    return this.leftovers().length === 0;
  }

  leftovers(label?: string): string[] {
    const isMeant = (one: { readonly label: string | undefined }): boolean =>
      label === undefined || one.label === label;
    return this.#store.names().flatMap((name) => {
      const { holds, waiters } = this.#store.read(name);
      return [
        ...holds.filter(isMeant).map((hold) => `the hold of ${name} by ${hold.label}`),
        ...waiters.filter(isMeant).map((waiter) => `the wait for ${name} of ${waiter.label}`),
      ];
    });
  }
}
