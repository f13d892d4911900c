import { AsyncLocalStorage } from 'node:async_hooks';
import type { Caller, Scope } from './scope.ts';

/** The reentrant scopes around a piece of code, innermost first. */
class Frame implements Caller {
  readonly scope: Scope;
  readonly outer: Frame | undefined;

  constructor(scope: Scope, outer: Frame | undefined) {
    this.scope = scope;
    this.outer = outer;
  }

  runsInside(scope: Scope): boolean {
    return this.scope === scope || (this.outer?.runsInside(scope) ?? false);
  }
}

const outside: Caller = { runsInside: () => false };

// Made at the first reentrant run: until then no asynchronous context is touched (docs/spec.md §5.1).
let storage: AsyncLocalStorage<Frame | undefined> | undefined;

/** Runs `work` inside `scope`. */
export function runInside<T>(scope: Scope, work: () => T): T {
  storage ??= new AsyncLocalStorage();
  return storage.run(new Frame(scope, storage.getStore()), work);
}

/** Runs `work` outside of every scope. */
export function runOutside<T>(work: () => T): T {
  return storage === undefined ? work() : storage.run(undefined, work);
}

/** The scopes around the running code, as far as core can see. */
export function currentCaller(): Caller {
  return storage?.getStore() ?? outside;
}

/** The innermost open scope around the running code that `matches`. */
export function enclosingScope(matches: (scope: Scope) => boolean): Scope | undefined {
  for (let frame = storage?.getStore(); frame !== undefined; frame = frame.outer) {
    if (frame.scope.isOpen && matches(frame.scope)) return frame.scope;
  }
  return undefined;
}
