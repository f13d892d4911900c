import type { LockBackend, AcquireRequest } from '@locks/core/backend';

/** A listener, by label, to events that core does not report: an acquisition was queued, or is being removed from the store. */
export interface BackendWatcher {
  /** The acquisition did not get the resource at once, and waits in the store's queue. */
  queued(label: string | undefined): void;
  leaving(label: string | undefined, done: Promise<unknown>): void;
}

/** Wraps a backend so that the watcher sees queued acquisitions and removals. */
export function watchBackend(backend: LockBackend, watcher: BackendWatcher): LockBackend {
  // A value that is no object is passed on: core refuses it, and its error says why.
  if (typeof backend !== 'object' || backend === null) return backend;
  const watched: Pick<LockBackend, 'attempt' | 'abandon'> = {
    async attempt(request: AcquireRequest, enqueue, call) {
      const attempt = await backend.attempt(request, enqueue, call);
      if (enqueue && attempt.status === 'contended') watcher.queued(request.label);
      return attempt;
    },
    abandon(request, call) {
      const done = backend.abandon(request, call);
      watcher.leaving(request.label, done);
      return done;
    },
  };
  // All other members are the backend's own; they are bound to it, since they may need `this`.
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
