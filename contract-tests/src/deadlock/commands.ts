/** A lock of a process that takes several. */
export interface WantedLock {
  readonly name: string;
  /** @defaultValue 'lock' */
  readonly how?: 'lock' | 'read' | 'write' | 'permit';
}

/** The start of a process. */
export interface ProcessSetup {
  readonly store: string;
  readonly env: Readonly<Record<string, string>>;
  readonly label: string;
  /** How long a wait lasts before circles are looked for, in milliseconds. */
  readonly deadlockAfterMs: number;
  readonly ttlMs: number;
  readonly waitMs: number;
}

/** What became of a wait. */
export interface WaitOutcome {
  /** The code of the error; `undefined` where the lock was acquired. */
  readonly code: string | undefined;
  readonly circle: readonly { readonly name: string; readonly waitsFor: string }[] | undefined;
  readonly tookMs: number;
}

/** The ends of what a process did at random. */
export interface RandomWork {
  readonly done: number;
  readonly deadlocks: number;
  readonly timeouts: number;
}

/** What the process of a test does when it is told to. */
export interface DeadlockCommands {
  /** Resolves when the locks are held: one after the other, or with `all`. */
  hold(locks: readonly WantedLock[], together?: boolean): Promise<void>;
  /** Waits for one more lock while they are held, and releases all. */
  want(lock: WantedLock): Promise<WaitOutcome>;
  /** Takes two or three of the locks at a time, in any order, as often as it is told. */
  workAtRandom(locks: readonly WantedLock[], rounds: number): Promise<RandomWork>;
}
