import type { LockMode } from '@locks/core';
import type { LockBackend } from '@locks/core/backend';
import type { Link, StoreNode } from '../network/link.ts';
import type { LoadedLocks } from '../process/lock-code.ts';
import type { SimulatedProcess } from '../process/simulated-process.ts';
import type { ApplicationAct, FaultPlan, StoreFaultPlan } from '../workload/plan.ts';

/** A store outside of all processes, as a run uses it. */
export interface SimulatedStore extends StoreNode {
  goAway(ms: number): void;
  /** Something happens to the store itself. Returns whether it lost data that somebody may count on. */
  suffer?(fault: StoreFaultPlan): boolean;
  /** The application of a process does something else by the client of its locks, and ends it after so long. */
  useClient?(process: SimulatedProcess, act: ApplicationAct, ms: number): void;
  /** From here on applications leave the clients of their locks alone. */
  heal?(): void;
  /** Interrupts a process in its next transaction. */
  interrupt?(process: SimulatedProcess, fault: Extract<FaultPlan, { kind: 'in a transaction' }>): void;
  /** The run is over. */
  close?(): void;
  /** The backend by which a process uses the store. */
  backendIn(process: SimulatedProcess, link: Link, loaded: LoadedLocks): LockBackend;
  isEmpty(): boolean;
  /** How an acquisition holds a resource in the store at this moment; `undefined`: it does not. It changes nothing. */
  modeHeld(resource: string, acquisitionId: string): LockMode['kind'] | undefined;
  /** What it keeps, of everybody or of those with a label that is meant, in words. */
  leftovers(isMeant?: (label: string) => boolean): string[];
}
