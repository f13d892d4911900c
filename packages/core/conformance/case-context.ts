import type { LockBackend } from '../src/backend/types.ts';
import type { LockManager } from '../src/create-locks.ts';
import { isLockError } from '../src/errors.ts';
import type { ManagerOptions } from '../src/options.ts';
import { Child } from './child/child.ts';
import { childPoolOf } from './child/child-pool.ts';
import { delegate } from './delegate.ts';
import { type Harness, inSteps, type Timing, timingOf } from './harness.ts';
import { Random } from './random.ts';

/** A backend, and a lock manager on it. */
export interface Client {
  /** The backend that the client made. */
  readonly backend: LockBackend;
  /** The manager on that backend. */
  readonly locks: LockManager;
}

export interface ClientOptions extends ManagerOptions {
  /** Wraps the backend that core gets, to lose replies, delay calls or count them. */
  readonly wrap?: (backend: LockBackend) => LockBackend;
}

let resources = 0;

/** Core's default, for backends that declare no `releaseBudgetMs`. */
const RELEASE_BUDGET_MS = 1_000;
const POLL_MS = 3;
const LONGEST_STEP_MS = 50;

/** A clock that must be read often: a time in which nobody reads it, because the process stands still, counts little. */
function ownTime(): () => number {
  let own = 0;
  let last = performance.now();
  return () => {
    const now = performance.now();
    own += Math.min(now - last, LONGEST_STEP_MS);
    last = now;
    return own;
  };
}

/** The context of a running case: it opens clients, backends and processes, and closes all of them when the case ends. */
export class CaseContext {
  /** How the suite reaches the backend. */
  readonly harness: Harness;
  /** The times of the case, in milliseconds. */
  readonly timing: Timing;
  /** The random numbers of the case. */
  readonly random: Random;
  /** What the random numbers of the case begin with. */
  readonly seed: number;
  /** Set when the case failed: its processes are not used again. */
  hasFailed = false;
  /** The step of the backend's ttls: a store may keep a lease for up to one step longer than its ttl. */
  readonly stepMs: number;
  /** How long core waits for the answer to a release or an abandon. */
  readonly releaseBudgetMs: number;
  readonly #prefix: string;
  readonly #cleanups: (() => Promise<void>)[] = [];

  constructor(harness: Harness, backend: LockBackend, caseId: string, seed: number) {
    this.harness = harness;
    this.timing = timingOf(harness, backend);
    this.stepMs = backend.capabilities.ttl.stepMs;
    this.releaseBudgetMs = Math.max(backend.releaseBudgetMs ?? RELEASE_BUDGET_MS, 2 * this.timing.slackMs);
    this.seed = seed;
    this.random = new Random(seed);
    this.#prefix = `conformance ${process.pid}-${Date.now().toString(36)} ${caseId}`;
  }

  /** A new name of a resource, never used before. */
  name(suffix = ''): string {
    resources += 1;
    return `${this.#prefix} ${resources}${suffix === '' ? '' : ` ${suffix}`}`;
  }

  /** The `waitMs` of a wait that must end contended: long enough for the store's first answer also on a busy machine. */
  get busyMs(): number {
    return 2 * this.timing.slackMs;
  }

  /** A client of its own, as another machine would have. */
  async client({ wrap = (backend) => backend, ...options }: ClientOptions = {}): Promise<Client> {
    const backend = wrap(await this.harness.createBackend());
    const locks = this.createLocks(backend, options);
    this.onEnd(() => locks.close());
    return { backend, locks };
  }

  /**
   * A client whose locks are under a prefix; `undefined` where the backend refuses the prefix.
   * @throws the error of the harness, where it is another one than that refusal
   */
  async clientUnder(prefix: string): Promise<Client | undefined> {
    const { createBackendUnder } = this.harness;
    if (typeof createBackendUnder !== 'function')
      throw new TypeError('the harness has no createBackendUnder');
    let backend: LockBackend;
    try {
      backend = await createBackendUnder(prefix);
    } catch (error) {
      if (isLockError(error, 'LOCK_INVALID_ARGUMENT')) return undefined;
      throw error;
    }
    const locks = this.createLocks(backend);
    this.onEnd(() => locks.close());
    return { backend, locks };
  }

  /** A manager that waits as long for the answer to a release as the harness says. The caller closes it. */
  createLocks(backend: LockBackend, options?: ManagerOptions): LockManager {
    return this.harness.createLocks(delegate(backend, { releaseBudgetMs: this.releaseBudgetMs }), options);
  }

  /** A backend without core, for behaviour that core hides. */
  async backend(): Promise<LockBackend> {
    const backend = await this.harness.createBackend();
    this.onEnd(() => backend.close());
    return backend;
  }

  /** A process of its own that loads the same harness and runs commands; its wall clock may differ from ours. */
  async child(wallClockOffsetMs = 0): Promise<Child> {
    const { module } = this.harness;
    if (wallClockOffsetMs !== 0) {
      const skewed = await Child.start(module, wallClockOffsetMs);
      this.onEnd(() => skewed.kill());
      return skewed;
    }
    const children = childPoolOf(module);
    const child = await children.take();
    this.onEnd(() => (this.hasFailed ? child.kill() : children.putBack(child)));
    return child;
  }

  /** A ttl for leases that must live through pauses of this machine: renewed in time even if one lasts 2 × slackMs. */
  get livingTtlMs(): number {
    return this.inSteps(this.timing.ttlMs + 3 * this.timing.slackMs);
  }

  /** The ttl that core would send: rounded up to the step of the backend. */
  inSteps(ttlMs: number): number {
    return inSteps(ttlMs, this.stepMs);
  }

  /** Adds what is done when the case ends, the latest first. */
  onEnd(cleanup: () => Promise<void>): void {
    this.#cleanups.push(cleanup);
  }

  /** Resolves after so many milliseconds. */
  async sleep(ms: number): Promise<void> {
    await new Promise((resolve) => setTimeout(resolve, ms));
  }

  /**
   * Waits until `holds`, asking every few milliseconds.
   * @throws Error naming `what` when it does not hold within `withinMs`
   */
  async until(
    what: string | (() => string),
    holds: () => boolean | Promise<boolean>,
    withinMs = this.timing.slackMs * 10,
  ): Promise<void> {
    const elapsed = ownTime();
    for (let overdue = 0; !(await holds()); ) {
      // After a pause of this process all its timers are due at once, and the timer of this wait may run first.
      if (elapsed() > withinMs) overdue += 1;
      if (overdue > 3) {
        const missed = typeof what === 'string' ? what : what();
        throw new Error(`Within ${Math.round(withinMs)} ms it never came true that ${missed}.`);
      }
      await this.sleep(POLL_MS);
    }
  }

  /** Measures the time in which this process ran, without its pauses, for upper bounds that a busy machine must keep. */
  stopwatch(): () => number {
    const elapsed = ownTime();
    const ticker = setInterval(elapsed, POLL_MS);
    this.onEnd(async () => clearInterval(ticker));
    return elapsed;
  }

  /** Waits until `count` acquisitions wait for `name`: needs the feature `waiters`. */
  async untilWaiting(locks: LockManager, name: string, count: number): Promise<void> {
    let shown = 0;
    await this.until(
      () =>
        `${count} wait for ${name}: inspect shows ${shown}` +
        (shown < count ? '. An entry of the queue was lost, or is not shown' : ''),
      async () => {
        shown = (await locks.inspect(name)).waiters.length;
        return shown === count;
      },
    );
  }

  /**
   * Closes everything that the case opened.
   * @throws the first error of what was added by `onEnd`
   */
  async end(): Promise<void> {
    const results = await Promise.allSettled(
      this.#cleanups
        .splice(0)
        .reverse()
        .map((cleanup) => cleanup()),
    );
    for (const result of results) {
      if (result.status === 'rejected') throw result.reason;
    }
  }
}
