import { AsyncLocalStorage } from 'node:async_hooks';
import { asyncContext } from '../async-context.ts';
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

function currentFrame(): Frame | undefined {
  return asyncContext.storage?.getStore() as Frame | undefined;
}

/** Runs `work` inside `scope`. */
export function runInside<T>(scope: Scope, work: () => T): T {
  asyncContext.storage ??= new AsyncLocalStorage();
  return asyncContext.storage.run(new Frame(scope, currentFrame()), work);
}

/** The scopes around the running code, as far as core can see them. */
export function currentCaller(): Caller {
  return currentFrame() ?? outside;
}

/** The innermost open scope around the running code that `matches`. */
export function enclosingScope(matches: (scope: Scope) => boolean): Scope | undefined {
  for (let frame = currentFrame(); frame !== undefined; frame = frame.outer) {
    if (frame.scope.isOpen && matches(frame.scope)) return frame.scope;
  }
  return undefined;
}
