import { asException, closedError } from './exceptions.ts';
import { illegalConstructor, illegalInvocation, shapeInterface } from './interface-object.ts';
import type { LockClient } from './lock-client.ts';
import { checkRequest, convertArguments } from './request-arguments.ts';
import type { LockGrantedCallback, LockManagerSnapshot, WebLockOptions, WebLocks } from './types.ts';

const clients = new WeakMap<object, LockClient>();

/** The class of the object that `webLocks()` returns, for `instanceof`; nothing else creates one. */
export class LockManager implements WebLocks {
  private constructor() {
    throw illegalConstructor();
  }

  get clientId(): string {
    return clientOf(this).clientId;
  }

  request<T>(name: string, callback: LockGrantedCallback<T>): Promise<Awaited<T>>;
  request<T>(name: string, options: WebLockOptions, callback: LockGrantedCallback<T>): Promise<Awaited<T>>;
  // In Web IDL an operation that returns a promise never throws: every error is a rejection. The `length` of `request` is 2.
  async request(_name: unknown, _second: unknown): Promise<never> {
    const client = clientOf(this);
    // oxlint-disable-next-line prefer-rest-params -- how many were passed decides what the second one is
    const wanted = convertArguments([...arguments]);
    checkOpen(client);
    checkRequest(wanted);
    client.checkSupport(wanted);
    return (await client.request(wanted)) as never;
  }

  async query(): Promise<LockManagerSnapshot> {
    const client = clientOf(this);
    checkOpen(client);
    try {
      return await client.query();
    } catch (error) {
      throw asException(error);
    }
  }

  async close(): Promise<void> {
    await clientOf(this).close();
  }

  /**
   * Does the same as `close()`.
   * @throws LockError `LOCK_BACKEND`, as `close()`
   */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

shapeInterface(LockManager, { operations: ['request', 'query'] });

export function makeLockManager(client: LockClient): LockManager {
  const manager = Object.create(LockManager.prototype) as LockManager;
  clients.set(manager, client);
  return manager;
}

function clientOf(manager: LockManager): LockClient {
  const client = clients.get(manager);
  if (client === undefined) throw illegalInvocation();
  return client;
}

/** Refuses a closed client, where the specification checks whether the document is fully active. */
function checkOpen({ isClosed }: LockClient): void {
  if (isClosed) throw closedError('InvalidStateError');
}
