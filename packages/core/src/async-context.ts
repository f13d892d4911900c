import type { AsyncLocalStorage } from 'node:async_hooks';
import { processWide } from './process-wide.ts';

/** The storage is made at the first reentrant `run`: until then no asynchronous context is touched (docs/spec.md §5.1). */
export const asyncContext = processWide(
  'context@1',
  (): { storage?: AsyncLocalStorage<unknown> | undefined } => ({}),
);

/** Runs `work` outside of every reentrant scope. */
export function runOutside<T>(work: () => T): T {
  return asyncContext.storage === undefined ? work() : asyncContext.storage.run(undefined, work);
}
