interface Followers {
  readonly actions: Set<() => void>;
  readonly onAbort: () => void;
}

const followersOf = new WeakMap<AbortSignal, Followers>();

/**
 * Calls `action` when the signal aborts; returns a function that ends that. A signal has one listener for all its followers:
 * the cost of a listener grows with the number of listeners, and Node warns of more than ten.
 */
export function followSignal(signal: AbortSignal, action: () => void): () => void {
  let followers = followersOf.get(signal);
  if (followers === undefined) followersOf.set(signal, (followers = makeFollowers()));
  const { actions, onAbort } = followers;
  if (actions.size === 0) signal.addEventListener('abort', onAbort, { once: true });
  actions.add(action);
  return () => {
    if (actions.delete(action) && actions.size === 0) signal.removeEventListener('abort', onAbort);
  };
}

function makeFollowers(): Followers {
  const actions = new Set<() => void>();
  const onAbort = (): void => {
    for (const action of actions) action();
    actions.clear();
  };
  return { actions, onAbort };
}
