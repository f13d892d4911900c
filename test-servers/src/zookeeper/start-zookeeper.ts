import { freePort } from '../free-port.ts';
import { guardian } from '../guardian.ts';
import { ZooKeeperServer } from './zookeeper-server.ts';

const TRIES = 5;

/** Starts one ZooKeeper server on a free port of 127.0.0.1. Its session timeouts go from 0.4 to 60 seconds. */
export async function startZookeeper(): Promise<ZooKeeperServer> {
  for (let tries = 1; ; tries += 1) {
    const dir = await (await guardian()).makeDirectory('zookeeper');
    const server = new ZooKeeperServer({ port: await freePort(), dir, config: [] });
    try {
      await server.launch();
      await server.untilReady();
      return server;
    } catch (error) {
      const taken = /BindException|Address already in use/.test(server.logTail(200));
      await server.stop();
      if (!taken || tries >= TRIES) throw error;
    }
  }
}
