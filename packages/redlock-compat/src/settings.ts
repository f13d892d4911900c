import {
  abortSignal,
  matching,
  milliseconds,
  optional,
  type OptionTable,
  readOptions,
  wholeNumber,
} from '@locks/core/backend';

/** The settings of a `Redlock`, as in redlock 5. All times are milliseconds. */
export interface Settings {
  /**
   * The drift that is tolerated with several clients: how much faster than ours the clock of a Redis may run, as a share of the
   * duration. From 0 to less than 1.
   * @defaultValue 0.01
   */
  readonly driftFactor: number;
  /**
   * The number of retries of a call; -1: for ever. A single resource is waited for in a queue for `retryCount` times
   * `retryDelay` instead.
   * @defaultValue 10
   */
  readonly retryCount: number;
  /**
   * The pause between two tries, in milliseconds.
   * @defaultValue 200
   */
  readonly retryDelay: number;
  /**
   * The jitter: at most so many milliseconds are added to or taken from `retryDelay` at random.
   * @defaultValue 100
   */
  readonly retryJitter: number;
  /**
   * A time in milliseconds that is accepted without effect: `using` extends its lock every third of the duration.
   * @defaultValue 500
   */
  readonly automaticExtensionThreshold: number;
}

/** Settings of one call. */
export interface RedlockCallSettings extends Partial<Omit<Settings, 'driftFactor'>> {
  /** Ends the wait for the lock: the call rejects with its reason, and holds nothing. redlock has no such setting. */
  readonly signal?: AbortSignal | undefined;
}

const BUILT_IN: Settings = {
  driftFactor: 0.01,
  retryCount: 10,
  retryDelay: 200,
  retryJitter: 100,
  automaticExtensionThreshold: 500,
};

const ms = milliseconds(0, Number.MAX_SAFE_INTEGER);
const isFactor = (value: unknown): value is number => typeof value === 'number' && value >= 0 && value < 1;

/** Readers of the settings that a call may have too. */
function retryTable(defaults: Settings) {
  return {
    retryCount: optional(wholeNumber(-1, Number.MAX_SAFE_INTEGER), defaults.retryCount),
    retryDelay: optional(ms, defaults.retryDelay),
    retryJitter: optional(ms, defaults.retryJitter),
    automaticExtensionThreshold: optional(ms, defaults.automaticExtensionThreshold),
  };
}

const TABLE = {
  driftFactor: optional(matching('a number from 0 to less than 1', isFactor), BUILT_IN.driftFactor),
  ...retryTable(BUILT_IN),
} satisfies OptionTable<Settings>;

const SIGNAL = optional(abortSignal);

/** Checked settings of one call. */
export type ResolvedCallSettings = Omit<Settings, 'driftFactor'> & {
  readonly signal: AbortSignal | undefined;
};

/** @throws LockError `LOCK_INVALID_ARGUMENT` */
export function readSettings(given: unknown): Settings {
  return readOptions('new Redlock()', given, TABLE);
}

/** @throws LockError `LOCK_INVALID_ARGUMENT` */
export function readCallSettings(caller: string, given: unknown, defaults: Settings): ResolvedCallSettings {
  const table = { ...retryTable(defaults), signal: SIGNAL } satisfies OptionTable<RedlockCallSettings>;
  return readOptions(caller, given, table, { driftFactor: 'new Redlock()' });
}
