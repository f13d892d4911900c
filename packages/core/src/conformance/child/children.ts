import { setTimeout as delay } from 'node:timers/promises';
import { Child } from './child.ts';

const CLOSE_MS = 1_000;
const MOST_IDLE = 8;

/**
 * The processes of one harness module. One that a case leaves unhurt is closed and kept for the next case: starting it is
 * the dearest part of most cases.
 */
export class Children {
  readonly #module: string;
  readonly #idle: Child[] = [];

  constructor(module: string) {
    this.#module = module;
  }

  /** One that has just started, or has just been opened again. */
  async take(): Promise<Child> {
    for (let child = this.#idle.pop(); child !== undefined; child = this.#idle.pop()) {
      if (!child.isUnhurt) continue;
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

  /** After its case: what it holds and waits for is given up, or ends with it. */
  async giveBack(child: Child): Promise<void> {
    if (child.isUnhurt && this.#idle.length < MOST_IDLE && (await closed(child))) {
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

async function closed(child: Child): Promise<boolean> {
  const closing = child.close().then(
    () => true,
    () => false,
  );
  return await Promise.race([closing, delay(CLOSE_MS, false, { ref: false })]);
}

const all = new Map<string, Children>();

export function childrenOf(module: string): Children {
  const known = all.get(module) ?? new Children(module);
  all.set(module, known);
  return known;
}
