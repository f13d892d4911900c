import { withTimeLimit } from '../../src/backend/time-limit.ts';
import { Child } from './child.ts';

const CLOSE_MS = 1_000;
const MOST_IDLE = 8;

/**
 * The child processes of one harness module. A process that still works after its case is closed and kept for the next
 * case: its start is the most expensive part of most cases.
 */
export class ChildPool {
  readonly #module: string;
  readonly #idle: Child[] = [];

  constructor(module: string) {
    this.#module = module;
  }

  /** Gives a process that was just started, or reopened. */
  async take(): Promise<Child> {
    for (let child = this.#idle.pop(); child !== undefined; child = this.#idle.pop()) {
      if (!child.isReusable) continue;
      child.isIdle = false;
      try {
        await child.open();
        return child;
      } catch {
        await child.kill();
      }
    }
    return await Child.start(this.#module);
  }

  /** Takes back a process after its case: its holds and waits end with its manager or with the process. */
  async putBack(child: Child): Promise<void> {
    if (child.isReusable && this.#idle.length < MOST_IDLE && (await closed(child))) {
      child.isIdle = true;
      this.#idle.push(child);
    } else {
      await child.kill();
    }
  }

  async end(): Promise<void> {
    for (const child of this.#idle) child.isIdle = false;
    await Promise.all(this.#idle.splice(0).map((child) => child.kill()));
  }
}

function closed(child: Child): Promise<boolean> {
  const closing = child.close().then(
    () => true,
    () => false,
  );
  return withTimeLimit(closing, CLOSE_MS, () => false);
}

const all = new Map<string, ChildPool>();

export function childPoolOf(module: string): ChildPool {
  const known = all.get(module) ?? new ChildPool(module);
  all.set(module, known);
  return known;
}
