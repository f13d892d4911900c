import type { LockBackend } from '../backend/types.ts';
import type { LockManager } from '../create-locks.ts';
import type { LockOptions } from '../options.ts';
import { Child } from './child/child.ts';
import { childrenOf } from './child/children.ts';
import { type Harness, type Timing, timingOf } from './harness.ts';
import { Random } from './random.ts';

export interface Client {
  readonly backend: LockBackend;
  readonly locks: LockManager;
}

export interface ClientOptions extends LockOptions {
  /** Puts something between core and the backend: loses replies, delays calls, counts them. */
  readonly wrap?: (backend: LockBackend) => LockBackend;
}

let resources = 0;

const POLL_MS = 3;
const LONGEST_STEP_MS = 50;

/** A clock that must be asked often: of a time in which it was not, because the process stood still, it counts little. */
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

/** What a case works with. Everything it opens is closed when the case ends. */
export class Stage {
  readonly harness: Harness;
  readonly timing: Timing;
  readonly random: Random;
  readonly seed: number;
  /** Its processes are not to be used again. */
  hasFailed = false;
  readonly #prefix: string;
  readonly #cleanups: (() => Promise<void>)[] = [];

  constructor(harness: Harness, backend: LockBackend, caseId: string, seed: number) {
    this.harness = harness;
    this.timing = timingOf(harness, backend);
    this.seed = seed;
    this.random = new Random(seed);
    this.#prefix = `conformance ${process.pid}-${Date.now().toString(36)} ${caseId}`;
  }

  /** The name of a resource that nobody ever used. */
  name(suffix = ''): string {
    resources += 1;
    return `${this.#prefix} ${resources}${suffix === '' ? '' : ` ${suffix}`}`;
  }

  /** A wait that is to end contended: long enough for the store's first answer also on a busy machine. */
  get busyMs(): number {
    return 2 * this.timing.slackMs;
  }

  /** A client of its own, as another machine would have. */
  async client({ wrap = (backend) => backend, ...options }: ClientOptions = {}): Promise<Client> {
    const backend = wrap(await this.harness.createBackend());
    const locks = this.harness.createLocks(backend, options);
    this.onEnd(() => locks.close());
    return { backend, locks };
  }

  /** A bare backend, for what core hides. */
  async backend(): Promise<LockBackend> {
    const backend = await this.harness.createBackend();
    this.onEnd(() => backend.close());
    return backend;
  }

  /** A process of its own that loads the same harness and does as it is told; its wall clock may differ from ours. */
  async child(wallClockOffsetMs = 0): Promise<Child> {
    const { module } = this.harness;
    if (wallClockOffsetMs !== 0) {
      const skewed = await Child.start(module, wallClockOffsetMs);
      this.onEnd(() => skewed.kill());
      return skewed;
    }
    const children = childrenOf(module);
    const child = await children.take();
    this.onEnd(() => (this.hasFailed ? child.kill() : children.giveBack(child)));
    return child;
  }

  /** A ttl for leases that must live through pauses of this machine: renewed in time even if one lasts 2 × slackMs. */
  get livingTtlMs(): number {
    return this.timing.ttlMs + 3 * this.timing.slackMs;
  }

  onEnd(cleanup: () => Promise<void>): void {
    this.#cleanups.push(cleanup);
  }

  async sleep(ms: number): Promise<void> {
    await new Promise((resolve) => setTimeout(resolve, ms));
  }

  /**
   * Waits until `holds`, asking every few milliseconds.
   * @throws Error naming `what` when it does not hold within `withinMs`
   */
  async until(
    what: string,
    holds: () => boolean | Promise<boolean>,
    withinMs = this.timing.slackMs * 10,
  ): Promise<void> {
    const elapsed = ownTime();
    for (let overdue = 0; !(await holds()); ) {
      // After a pause of this process its timers fall due together, and this one may be the first of them.
      if (elapsed() > withinMs) overdue += 1;
      if (overdue > 3) throw new Error(`Within ${withinMs} ms it never came true that ${what}.`);
      await this.sleep(POLL_MS);
    }
  }

  /**
   * Measures the time that this process had: what it stood still for counts as little. For upper bounds, which a busy
   * machine must not break.
   */
  stopwatch(): () => number {
    const elapsed = ownTime();
    const ticker = setInterval(elapsed, POLL_MS);
    this.onEnd(async () => clearInterval(ticker));
    return elapsed;
  }

  /** Waits until `count` acquisitions wait for `name`: needs the feature `waiters`. */
  async untilWaiting(locks: LockManager, name: string, count: number): Promise<void> {
    await this.until(
      `${count} wait for ${name}`,
      async () => (await locks.inspect(name)).waiters.length === count,
    );
  }

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
