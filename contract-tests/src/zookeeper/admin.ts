import { once } from 'node:events';
import { createRequire } from 'node:module';
import { connect } from 'node:net';
import type { NodeZooKeeperClient } from '@locks/zookeeper';
import type { NativeZooKeeperClient } from '@locks/zookeeper/native';

/** A client of the library, which has no types of its own, with what an administrator needs of it. */
export type AdminClient = NodeZooKeeperClient & {
  getSessionPassword(): Buffer;
  once(event: 'connected' | 'disconnected' | 'expired', listener: () => void): unknown;
};

interface Library {
  createClient(servers: string, options: { sessionTimeout: number; spinDelay?: number }): AdminClient;
}

const library = createRequire(import.meta.url)('node-zookeeper-client') as Library;

const SESSION_MS = 4_000;
const CLOSE_MS = 1_000;
const CONNECT_MS = 5_000;
const TRIES = 20;

/** A connection of its own for `act`. */
export async function withAdmin<T>(servers: string, act: (admin: AdminClient) => Promise<T>): Promise<T> {
  const client = await connectClient(servers, SESSION_MS);
  try {
    return await act(client);
  } finally {
    await new Promise<void>((resolve) => {
      client.once('disconnected', resolve);
      // It may have been disconnected before: nothing tells then.
      setTimeout(resolve, CLOSE_MS);
      client.close();
    });
  }
}

/** A connected client of the library. */
export async function connectClient(servers: string, sessionTimeout: number): Promise<AdminClient> {
  const client = library.createClient(servers, { sessionTimeout, spinDelay: 100 });
  surviveUnknownCodes(client);
  const connected = new Promise<void>((resolve, reject) => {
    client.once('connected', resolve);
    client.once('expired', () => reject(new Error('The session is over.')));
    // The library would try for ever, and keep the process alive.
    setTimeout(() => reject(new Error(`No connection to ${servers}.`)), CONNECT_MS).unref();
  });
  client.connect();
  try {
    await connected;
    return client;
  } catch (error) {
    client.close();
    throw error;
  }
}

/** The library throws a code that it does not know where nobody can catch it: as of a request after the session's end. */
function surviveUnknownCodes(client: AdminClient): void {
  const { connectionManager: manager } = client as unknown as {
    connectionManager: { socket?: { destroy(): void }; onSocketData(data: Buffer): void };
  };
  const original = manager.onSocketData;
  manager.onSocketData = (data) => {
    try {
      original.call(manager, data);
    } catch {
      manager.socket?.destroy();
    }
  };
}

/** A session, as whoever wants to end it must know it. */
export interface Victim {
  session(): { readonly id: Buffer; readonly password: Buffer };
  /** Whether its client has heard of the end. */
  ended(): boolean;
}

/** The session of a client of either library, which has just been made. */
export function sessionOf(client: NodeZooKeeperClient | NativeZooKeeperClient): Victim {
  let ended = false;
  const end = (): void => {
    ended = true;
  };
  if ('aw_get' in client) {
    client.on('close', end);
    return {
      session: () => ({
        id: Buffer.from(String(client.client_id).padStart(16, '0'), 'hex'),
        password: Buffer.from((client as { client_password?: string }).client_password ?? '', 'hex'),
      }),
      ended: () => ended,
    };
  }
  client.on('expired', end);
  const { getSessionPassword } = client as AdminClient;
  return {
    session: () => ({ id: client.getSessionId(), password: getSessionPassword.call(client) }),
    ended: () => ended,
  };
}

/** Ends a session, and waits until its client heard of it. */
export async function endSession(servers: string, victim: Victim): Promise<void> {
  // Only here: child processes load no more than they need.
  const { waitUntil } = await import('@locks/test-servers');
  const session = victim.session();
  for (let tries = 0; !victim.ended(); tries += 1) {
    if (tries === TRIES) throw new Error('The session does not end.');
    const address = servers.split(',')[tries % servers.split(',').length] as string;
    // It fails where the server is down, or the session over already.
    await takeOverAndClose(address, session).catch(() => undefined);
    await waitUntil(victim.ended, { what: 'the client to be told', timeoutMs: 500 }).catch(() => undefined);
  }
}

const CONNECT_LENGTH = 45;
const CLOSE_SESSION = -11;

/**
 * Whoever knows id and password may move a session to a connection of his own, and close it. Both requests go in one
 * write: with an answer awaited in between, the client that lost it may be quick and take it back.
 */
async function takeOverAndClose(
  address: string,
  { id, password }: ReturnType<Victim['session']>,
): Promise<void> {
  const [host = '', port] = address.split(':');
  const socket = connect({ host, port: Number(port ?? 2181) });
  const ended = once(socket, 'close');
  socket.setTimeout(CLOSE_MS, () => socket.destroy());
  socket.on('error', () => undefined).resume();
  // Protocol 0, the last transaction seen (none), a timeout, the session and its password, not read-only.
  const request = Buffer.alloc(4 + CONNECT_LENGTH);
  request.writeInt32BE(CONNECT_LENGTH, 0);
  request.writeInt32BE(SESSION_MS, 16);
  id.copy(request, 20);
  request.writeInt32BE(password.length, 28);
  password.copy(request, 32);
  const close = Buffer.alloc(12);
  close.writeInt32BE(8, 0);
  close.writeInt32BE(1, 4);
  close.writeInt32BE(CLOSE_SESSION, 8);
  socket.write(Buffer.concat([request, close]));
  await ended;
}

export async function childrenOf(servers: string, path: string): Promise<readonly string[]> {
  return await withAdmin(
    servers,
    (admin) =>
      new Promise((resolve, reject) => {
        admin.getChildren(path, (error, names) => {
          if (error && error.code !== -101) reject(error);
          else resolve(error ? [] : names);
        });
      }),
  );
}

export async function deleteNode(servers: string, path: string): Promise<void> {
  await withAdmin(
    servers,
    (admin) =>
      new Promise<void>((resolve, reject) => {
        admin.remove(path, (error) => (error ? reject(error) : resolve()));
      }),
  );
}
