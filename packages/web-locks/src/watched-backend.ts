import type { AcquireRequest, LockBackend } from '@locks/core';

/** Told of what core does not say: when an acquisition is in the queue, and when one is being taken out of the store. */
export interface BackendWatcher {
  /** The acquisition with this label did not get the resource at once, and waits for it. */
  queued(label: string | undefined): void;
  leaving(resource: string, done: Promise<unknown>): void;
}

/** The same backend, watched. */
export function watchBackend(backend: LockBackend, watcher: BackendWatcher): LockBackend {
  // Core refuses it, and says why.
  if (typeof backend !== 'object' || backend === null) return backend;
  const watched: Pick<LockBackend, 'attempt' | 'abandon'> = {
    async attempt(request: AcquireRequest, enqueue, call) {
      const attempt = await backend.attempt(request, enqueue, call);
      if (enqueue && attempt.status === 'contended') watcher.queued(request.label);
      return attempt;
    },
    abandon(request, call) {
      const done = backend.abandon(request, call);
      watcher.leaving(request.resource, done);
      return done;
    },
  };
  // Whatever else a backend has, or will have, is its own; its methods may need themselves as `this`.
  const members = watched as Record<PropertyKey, unknown>;
  return new Proxy(watched as LockBackend, {
    get(_, key) {
      if (Object.hasOwn(members, key)) return members[key];
      const member: unknown = Reflect.get(backend, key);
      members[key] = typeof member === 'function' ? (member.bind(backend) as unknown) : member;
      return members[key];
    },
    has: (_, key) => Reflect.has(backend, key),
  });
}
