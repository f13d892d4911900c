import type { LockBackend } from '../src/backend/types.ts';

/** A backend that behaves as `backend` except for `overrides`. A `Proxy` does not work: backends have private fields. */
export function delegate(backend: LockBackend, overrides: Partial<LockBackend>): LockBackend {
  return {
    spec: backend.spec,
    name: backend.name,
    capabilities: backend.capabilities,
    ...(backend.releaseBudgetMs !== undefined && { releaseBudgetMs: backend.releaseBudgetMs }),
    attempt: (request, enqueue, call) => backend.attempt(request, enqueue, call),
    abandon: (request, call) => backend.abandon(request, call),
    renew: (items, call) => backend.renew(items, call),
    release: (grant, call) => backend.release(grant, call),
    inspect: (...args) => backend.inspect(...args),
    isRetryable: (error) => error instanceof NoReply || backend.isRetryable(error),
    close: () => backend.close(),
    ...(backend.attemptMany && { attemptMany: backend.attemptMany.bind(backend) }),
    ...(backend.awaitTurn && { awaitTurn: backend.awaitTurn.bind(backend) }),
    ...(backend.downgrade && { downgrade: backend.downgrade.bind(backend) }),
    ...(backend.resize && { resize: backend.resize.bind(backend) }),
    ...(backend.list && { list: backend.list.bind(backend) }),
    ...(backend.forceRelease && { forceRelease: backend.forceRelease.bind(backend) }),
    ...(backend.connectionError && { connectionError: backend.connectionError.bind(backend) }),
    ...(backend.isClientClosed && { isClientClosed: backend.isClientClosed.bind(backend) }),
    ...(backend.ping && { ping: backend.ping.bind(backend) }),
    ...(backend.prepare && { prepare: backend.prepare.bind(backend) }),
    ...overrides,
  };
}

/** The error of a client whose connection was lost before the reply: the command may have run. */
export class NoReply extends Error {
  constructor(what = 'call') {
    super(`the connection was lost before the reply to the ${what} came`);
  }
}
