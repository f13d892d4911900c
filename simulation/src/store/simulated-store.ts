import type { LockBackend } from '@locks/core';
import type { Link, StoreNode } from '../network/link.ts';
import type { LoadedLocks } from '../process/lock-code.ts';
import type { SimulatedProcess } from '../process/simulated-process.ts';

/** A store outside of all processes, as a run uses it. */
export interface SimulatedStore extends StoreNode {
  goAway(ms: number): void;
  /** The backend by which a process uses the store. */
  backendIn(process: SimulatedProcess, link: Link, loaded: LoadedLocks): LockBackend;
  isEmpty(): boolean;
  /** What it keeps, of everybody or of one participant, in words. */
  leftovers(label?: string): string[];
}
