import type { BackendCapabilities } from '@locks/core/backend';
import type { Address } from '@locks/core/conformance/proxy';

/** The module that opens the locks in every worker. */
export interface StoreModule {
  /** The URL of the module, whose default export opens the locks. */
  readonly module: string;
  /** What the default export is called with. It has to survive JSON. */
  readonly argument?: unknown;
}

/** What a worker is told at its start, as JSON. */
export interface WorkerSetup extends StoreModule {
  /** The name of the worker in histories. */
  readonly name: string;
  /** The folder of histories and facts. */
  readonly folder: string;
  /** What the names of all locks begin with. */
  readonly prefix: string;
  readonly ttlMs: number;
}

/** What a worker knows of the locks that it has opened. */
export interface OpenedLocks {
  readonly name: string;
  /** Whether they are those of another library. */
  readonly isOther: boolean;
  readonly capabilities: BackendCapabilities;
  /** The median time of a pair of acquire and release, in milliseconds. */
  readonly pairMs: number;
}

/** The times of the loops of a worker, in milliseconds. */
export interface LoopTimes {
  /** How long a hold lasts without a renewal. */
  readonly ttlMs: number;
  /** How long a patient waiter waits: for longer than the lock of a dead holder is refused. */
  readonly patienceMs: number;
}

/** A name that could not be acquired, or was still listed, when everybody had stopped. */
export interface LeftBehind {
  readonly name: string;
  readonly what: string;
}

export interface CrewCommands {
  /** Opens the locks, and acquires one of them. */
  open(): Promise<OpenedLocks>;
  /** Starts the loops. */
  start(times: LoopTimes): Promise<void>;
  /** Resolves when every loop has ended; no section is left open. */
  stop(): Promise<void>;
  /** What is left when all others have stopped; it is removed. For a worker that was not started. */
  leftBehind(withinMs: number): Promise<readonly LeftBehind[]>;
  /** Closes the locks. */
  close(): Promise<void>;
  /** Resolves when the worker holds a lock for some time, or after a time. */
  untilHolding(withinMs: number): Promise<void>;
  /** Blocks the event loop. */
  block(ms: number): Promise<void>;
  /** Sets the wall clock of the process to so many milliseconds from that of the machine. */
  setClock(offsetMs: number): Promise<void>;
  /** Says at which port of 127.0.0.1 the proxy of a server listens. */
  connectThrough(server: string, port: number): Promise<void>;
}

/** What a worker asks of the process that started it: a proxy before a server. */
export interface ProxyRequest {
  readonly proxyFor: Address;
}

export function keyOf({ host, port }: Address): string {
  return `${host}:${port}`;
}

export function historyFile(folder: string, worker: string): string {
  return `${folder}/history ${worker}.jsonl`;
}

export function factsFile(folder: string, worker: string): string {
  return `${folder}/facts ${worker}.jsonl`;
}

/** A line of the facts that a worker writes beside its history. */
export type Fact =
  | {
      readonly kind: 'wait';
      readonly resource: string;
      readonly askedAt: number;
      readonly endedAt: number;
      readonly waitMs: number;
      /** When the caller gave up. */
      readonly abortedAt?: number;
      readonly outcome: 'granted' | 'refused' | 'failed';
    }
  | {
      readonly kind: 'loss';
      readonly resource: string;
      readonly acquisitionId: string;
      /** What the lease said: docs/spec.md §8.1. */
      readonly reason: string;
    }
  | {
      /** The event loop of the worker stood still. */
      readonly kind: 'stall';
      readonly from: number;
      readonly until: number;
    };
