import { once } from 'node:events';
import { createRequire } from 'node:module';
import { connect } from 'node:net';
import type { NodeZooKeeperClient } from '@locks/zookeeper';
import type { NativeZooKeeperClient } from '@locks/zookeeper/native';

/** A client of the library, which has no types of its own, with the members that an administrator needs. */
export type AdminClient = NodeZooKeeperClient & {
  getSessionPassword(): Buffer;
  once(event: 'connected' | 'disconnected' | 'expired', listener: () => void): unknown;
};

interface Library {
  createClient(servers: string, options: { sessionTimeout: number; spinDelay?: number }): AdminClient;
}

const library = createRequire(import.meta.url)('node-zookeeper-client') as Library;

const NODE_EXISTS = -110;
const PERSISTENT = 0;
const PERSISTENT_SEQUENTIAL = 2;
const SESSION_MS = 4_000;
const CLOSE_MS = 1_000;
const CONNECT_MS = 5_000;
const TRIES = 20;

/** Runs `act` with a connection of its own. */
export async function withAdmin<T>(servers: string, act: (admin: AdminClient) => Promise<T>): Promise<T> {
  const client = await connectClient(servers, SESSION_MS);
  try {
    return await act(client);
  } finally {
    await new Promise<void>((resolve) => {
      client.once('disconnected', resolve);
      // A client that was disconnected before emits no event.
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
    // Without an end the library would try for ever, and keep the process alive.
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

/** The library throws an unknown code where nobody can catch it, such as that of a request after the end of the session. */
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

/** The properties of a session that a client needs to end it. */
export interface Victim {
  session(): { readonly id: Buffer; readonly password: Buffer };
  /** Whether the client has noticed the end of its session, or was closed. */
  ended(): boolean;
}

/** The session of a new client of either library. */
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
  const { getSessionPassword, close } = client as AdminClient;
  // The backend closes a client whose server is silent for longer than the session lasts; that client emits no `expired`.
  client.close = () => {
    end();
    close.call(client);
  };
  return {
    session: () => ({ id: client.getSessionId(), password: getSessionPassword.call(client) }),
    ended: () => ended,
  };
}

/** Ends a session, and waits until its client has noticed. */
export async function endSession(servers: string, victim: Victim): Promise<void> {
  // The import is here because child processes load no more than they need.
  const { waitUntil } = await import('@locks/test-servers');
  const session = victim.session();
  for (let tries = 0; !victim.ended(); tries += 1) {
    if (tries === TRIES) throw new Error('The session does not end.');
    const address = servers.split(',')[tries % servers.split(',').length] as string;
    // The call fails where the server is down, or the session has ended already.
    await takeOverAndClose(address, session).catch(() => undefined);
    await waitUntil(victim.ended, {
      what: 'the client to notice the end of its session',
      timeoutMs: 500,
    }).catch(() => undefined);
  }
}

const CONNECT_LENGTH = 45;
const CLOSE_SESSION = -11;

/**
 * A client with the id and the password of a session can move it to its own connection and close it. Both requests go in one
 * write: otherwise the former client could move the session back in between.
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

/** Makes a node that stays, after those above it. Its name gets the server's next number. */
export async function createSequentialNode(servers: string, path: string, data: string): Promise<void> {
  await withAdmin(servers, async (admin) => {
    const make = (each: string, content: string, mode: number): Promise<void> =>
      new Promise((resolve, reject) => {
        admin.create(each, Buffer.from(content), mode, (error) =>
          error && error.code !== NODE_EXISTS ? reject(error) : resolve(),
        );
      });
    for (let end = path.indexOf('/', 1); end !== -1; end = path.indexOf('/', end + 1))
      await make(path.slice(0, end), '', PERSISTENT);
    await make(path, data, PERSISTENT_SEQUENTIAL);
  });
}
