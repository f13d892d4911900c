import type { OnceOptions, OnceRecord, OnceResult } from '@locks/once';

/** One machine, as plain data for its process. */
export interface MachineSetup {
  /** A harness of the conformance suite, by its name. */
  readonly store: RecordKind;
  /** The environment that the harness reads. */
  readonly env: Readonly<Record<string, string>>;
  readonly label: string;
  /** How many milliseconds the clock of this machine is ahead of the true time; less than 0: it is late. */
  readonly aheadMs: number;
}

/** The stores for which there is a record. */
export type RecordKind = 'sqlite' | 'redis-ioredis' | 'redis-node' | 'postgres-lease' | 'mysql';

export interface MachineCall extends Pick<OnceOptions, 'atMostMs' | 'keepAlive' | 'retry' | 'waitMs'> {
  readonly job: string;
  readonly slotMs: number;
  /** What the job does: it works for so many milliseconds, throws, or kills its process at its end. */
  readonly work: number | 'fail' | 'die';
}

export interface HoldOptions {
  readonly ttlMs: number;
  readonly waitMs: number;
}

/** The commands of a machine: those of its record, and its own. */
export interface MachineCommands extends OnceRecord {
  /** Calls `once` at this true time, which the clock of the machine shows in its own way. */
  once(call: MachineCall, trueMs: number): Promise<OnceResult<string>>;
  /** The slots for which the job has begun here. */
  begun(): Promise<readonly string[]>;
  /** Acquires a lease that is not renewed, as a function does that may be frozen between two calls. */
  hold(name: string, options: HoldOptions): Promise<void>;
  /** What the lease of `hold` says of itself, and the outcome of its release. */
  held(): Promise<{ readonly validForMs: number; readonly isAborted: boolean; readonly released: string }>;
}
