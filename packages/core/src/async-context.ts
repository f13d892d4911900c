import { AsyncLocalStorage } from 'node:async_hooks';
import { processWide } from './process-wide.ts';

const shared = processWide('context@2', (): { storage?: AsyncLocalStorage<unknown> | undefined } => ({}));

/**
 * Whether the runtime carries a storage along with each promise for next to nothing, as Node does since version 24. Older ones slow
 * down every promise of the process once there is a storage (docs/adr/0025-run-is-seen-from-inside.md).
 */
const IS_CHEAP = Number.parseInt(process.versions.node, 10) >= 24;

/** What the running code runs inside of: set by {@link runIn}. */
export function currentContext(): unknown {
  return shared.storage?.getStore();
}

/** Whether a `run` that could do without is to be seen from inside: where that is cheap, or paid for already. */
export function isContextCheap(): boolean {
  return IS_CHEAP || shared.storage !== undefined;
}

/** Runs `work` inside `context`. The storage is made here, at the first use (docs/spec.md §5.1). */
export function runIn<T>(context: unknown, work: () => T): T {
  shared.storage ??= new AsyncLocalStorage();
  return shared.storage.run(context, work);
}

/** Runs `work` outside of every `run`. */
export function runOutside<T>(work: () => T): T {
  return shared.storage === undefined ? work() : shared.storage.run(undefined, work);
}
