import type {
  CoalesceOptions,
  OnceOptions,
  SlotStore,
  OnceResult,
  ResultStore,
  SlotEntry,
} from '@locks/once';

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

/** The stores for which there is a slot store. */
export type RecordKind =
  | 'sqlite'
  | 'file'
  | 'redis-ioredis'
  | 'redis-node'
  | 'postgres-lease'
  | 'mysql'
  | 'etcd'
  | 'zookeeper'
  | 'zookeeper-native'
  | 'dynamodb'
  | 's3'
  | 'nats'
  | 'mongodb'
  | 'kubernetes';

export interface MachineCall extends Pick<OnceOptions, 'atMostMs' | 'keepAlive' | 'retry' | 'waitMs'> {
  readonly job: string;
  readonly slotMs: number;
  /** What the job does: it works for so many milliseconds, throws, or kills its process at its end. */
  readonly work: number | 'fail' | 'die';
}

export interface BuildCall extends Pick<CoalesceOptions, 'shareForMs' | 'ttlMs'> {
  readonly key: string;
  /** How many callers ask for the result at once. */
  readonly callers: number;
  /** For how many milliseconds the work goes on. */
  readonly work: number;
}

export interface HoldOptions {
  readonly ttlMs: number;
  readonly waitMs: number;
}

/** The commands of a machine: those of its slot store, and its own. */
export interface MachineCommands extends SlotStore {
  /** Calls `once` at this true time, which the clock of the machine shows in its own way. */
  once(call: MachineCall, trueMs: number): Promise<OnceResult<string>>;
  /** Calls `resetSlot`. */
  reset(job: string): Promise<SlotEntry | undefined>;
  /** The slots for which the job has begun here. */
  begun(): Promise<readonly string[]>;
  /** Calls `coalesce`, and gives what each caller got: the label of the machine that worked, and the number of its run. */
  coalesce(call: BuildCall): Promise<readonly string[]>;
  /** The runs of `coalesce` that have begun here. */
  built(): Promise<readonly string[]>;
  /** Calls `newestWins` with work of so many milliseconds, or until `endWork`; tells whether it ran, or the code of the error. */
  newest(name: string, work: number | 'until told'): Promise<string>;
  endWork(): Promise<void>;
  /** How many of these works have begun here. */
  newestBegun(): Promise<number>;
  /** How many wait for a lock. */
  waiting(name: string): Promise<number>;
  /** Those of the result store. */
  getResult: ResultStore['get'];
  setResult: ResultStore['set'];
  /** Acquires a lease that is not renewed, as a function does that may be frozen between two calls. */
  hold(name: string, options: HoldOptions): Promise<void>;
  /** What the lease of `hold` says of itself, and the outcome of its release. */
  held(): Promise<{ readonly validForMs: number; readonly isAborted: boolean; readonly released: string }>;
}
