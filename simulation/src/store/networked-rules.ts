import type { LockMode } from '@locks/core';
import type { LockBackend } from '@locks/core/backend';
import type { Link } from '../network/link.ts';
import type { SimulatedProcess } from '../process/simulated-process.ts';
import { RulesBackend } from './rules-backend.ts';
import type { RulesStore } from './rules-store.ts';
import type { SimulatedStore } from './simulated-store.ts';

/** A store of the rules, and the network to it. It keeps its data. */
export class NetworkedRules implements SimulatedStore {
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

  modeHeld(resource: string, acquisitionId: string): LockMode['kind'] | undefined {
    return this.#store.modeHeld(resource, acquisitionId);
  }

  leftovers(isMeant: (label: string) => boolean = () => true): string[] {
    const named = ({ label = '' }: { readonly label?: string | undefined }): boolean => isMeant(label);
    return this.#store.names().flatMap((name) => {
      const { holds, waiters } = this.#store.read(name);
      return [
        ...holds.filter(named).map((hold) => `the hold of ${name} by ${hold.label}`),
        ...waiters.filter(named).map((waiter) => `the wait for ${name} of ${waiter.label}`),
      ];
    });
  }
}
