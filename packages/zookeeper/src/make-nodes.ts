import { hasCode } from './client-port.ts';
import type { ZookeeperSession } from './zookeeper-session.ts';

/** Creates a node, and those above it, unless they exist. */
export async function makeNodes(session: ZookeeperSession, path: string): Promise<void> {
  const segments = path.split('/').slice(1);
  for (const [index] of segments.entries()) {
    const made = `/${segments.slice(0, index + 1).join('/')}`;
    try {
      await session.ask(() => session.port.create(made, Buffer.alloc(0), 'persistent'));
    } catch (error) {
      if (!hasCode(error, 'NODE_EXISTS')) throw error;
    }
  }
}

/** Sends requests; where a node is missing that they need, it is made, and they are sent again. */
export async function afterMaking<T>(
  session: ZookeeperSession,
  path: string,
  send: () => Promise<T>,
): Promise<T> {
  try {
    return await send();
  } catch (error) {
    if (!hasCode(error, 'NO_NODE')) throw error;
    await makeNodes(session, path);
    return await send();
  }
}
