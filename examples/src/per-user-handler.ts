/**
 * An HTTP handler that serves one request of a user at a time, on however many machines: two quick clicks on "pay" do
 * not pay twice. Another user does not wait. A client that hangs up gives up its place in the queue.
 */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { isLockError, type LockManager } from '@locks/core';

export type UserHandler = (user: string, request: IncomingMessage, response: ServerResponse) => Promise<void>;

export function onePerUser(locks: LockManager, handle: UserHandler): RequestListener {
  return (request, response) => {
    void serve(locks, handle, request, response);
  };
}

async function serve(
  locks: LockManager,
  handle: UserHandler,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const user = request.headers['x-user'];
  if (typeof user !== 'string' || user === '') return void response.writeHead(400).end('x-user is missing\n');
  const hungUp = new AbortController();
  response.once('close', () => hungUp.abort(new Error('the client hung up')));
  try {
    await locks.lock(`user:${user}`).run(() => handle(user, request, response), {
      waitMs: 5_000,
      signal: hungUp.signal,
    });
  } catch (error) {
    if (response.headersSent || response.destroyed) return;
    if (isLockError(error, 'LOCK_TIMEOUT')) response.writeHead(429, { 'retry-after': '1' }).end('busy\n');
    else response.writeHead(500).end('failed\n');
  }
}
