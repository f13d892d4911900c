interface Followers {
  readonly all: Set<() => void>;
  readonly tell: () => void;
}

const followersOf = new WeakMap<AbortSignal, Followers>();

/**
 * Calls `told` when the signal aborts; gives what ends that. However many follow one signal, it has one listener: the
 * cost of a listener grows with their number, and Node warns of more than ten.
 */
export function followSignal(signal: AbortSignal, told: () => void): () => void {
  let followers = followersOf.get(signal);
  if (followers === undefined) followersOf.set(signal, (followers = makeFollowers()));
  const { all, tell } = followers;
  if (all.size === 0) signal.addEventListener('abort', tell, { once: true });
  all.add(told);
  return () => {
    if (all.delete(told) && all.size === 0) signal.removeEventListener('abort', tell);
  };
}

function makeFollowers(): Followers {
  const all = new Set<() => void>();
  const tell = (): void => {
    for (const told of all) told();
    all.clear();
  };
  return { all, tell };
}
