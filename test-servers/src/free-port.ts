import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type ListenOptions, type Server } from 'node:net';

// Below the ports that systems give to outgoing connections: a client that reconnects to a killed server must not be
// given the server's own port (it would be connected to itself), and a restart must find its port free.
const FIRST = 11_000;
const LAST = 21_999;
/** A Redis Cluster node also listens this far above its port. */
const BUS_OFFSET = 10_000;

const given = new Set<number>();

/**
 * A port of 127.0.0.1 on which nobody listens now. It is returned once only by this process, and on Linux by no other process
 * while this one lives: a server that is away for a test finds its port free when it comes back. Other programs may take it:
 * the start of a server then tries another port.
 */
export async function freePort({ withClusterBus = false } = {}): Promise<number> {
  for (let tries = 0; tries < 500; tries += 1) {
    const port = randomInt(FIRST, LAST + 1);
    const wanted = withClusterBus ? [port, port + BUS_OFFSET] : [port];
    if (wanted.some((each) => given.has(each))) continue;
    for (const each of wanted) given.add(each);
    if (!(await every(wanted, isOurs))) continue;
    if (await every(wanted, isFree)) return port;
  }
  throw new Error(`Found no free port on 127.0.0.1 between ${FIRST} and ${LAST}.`);
}

async function every(ports: readonly number[], holds: (port: number) => Promise<boolean>): Promise<boolean> {
  return !(await Promise.all(ports.map(holds))).includes(false);
}

/** Reserves the port among the processes of these tests until this one ends, by a socket without a file. */
async function isOurs(port: number): Promise<boolean> {
  return (
    process.platform !== 'linux' ||
    (await listens(createServer().unref(), { path: `\0locks test port ${port}` }))
  );
}

/** Whether a server could listen on this port of 127.0.0.1 now. */
export async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  if (!(await listens(server, { port, host: '127.0.0.1', exclusive: true }))) return false;
  server.close();
  await once(server, 'close');
  return true;
}

async function listens(server: Server, at: ListenOptions): Promise<boolean> {
  server.listen(at);
  try {
    await once(server, 'listening');
    return true;
  } catch {
    return false;
  }
}
