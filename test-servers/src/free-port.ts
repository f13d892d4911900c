import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';

// Below the ports that systems give to outgoing connections: a client that reconnects to a killed server must not be
// given the server's own port (it would be connected to itself), and a restart must find its port free.
const FIRST = 11_000;
const LAST = 21_999;
/** A Redis Cluster node also listens this far above its port. */
const BUS_OFFSET = 10_000;

const given = new Set<number>();

/**
 * A port of 127.0.0.1 on which nobody listens now, never given twice by this process.
 * Another process may still be quicker: whoever starts a server tries again with another port.
 */
export async function freePort({ withClusterBus = false } = {}): Promise<number> {
  for (let tries = 0; tries < 500; tries += 1) {
    const port = randomInt(FIRST, LAST + 1);
    const wanted = withClusterBus ? [port, port + BUS_OFFSET] : [port];
    if (wanted.some((each) => given.has(each))) continue;
    const free = await Promise.all(wanted.map(isFree));
    if (free.includes(false)) continue;
    for (const each of wanted) given.add(each);
    return port;
  }
  throw new Error(`Found no free port on 127.0.0.1 between ${FIRST} and ${LAST}.`);
}

/** Whether a server could listen on this port of 127.0.0.1 now. */
export async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  server.listen({ port, host: '127.0.0.1', exclusive: true });
  try {
    await once(server, 'listening');
  } catch {
    return false;
  }
  server.close();
  await once(server, 'close');
  return true;
}
