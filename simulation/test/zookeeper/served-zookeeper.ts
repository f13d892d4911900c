import { createServer, type Server, type Socket } from 'node:net';
import { once } from 'node:events';
import { SeededRandom } from '../../src/kernel/seeded-random.ts';
import { World } from '../../src/kernel/world.ts';
import { SimulatedZookeeper } from '../../src/zookeeper/simulated-zookeeper.ts';
import type { ServerConnection } from '../../src/zookeeper/server-connection.ts';

/** The simulated server behind a real port, so that one client library asks it and a real server. */
export class ServedZookeeper {
  readonly #world = new World(1, false);
  readonly #servers: SimulatedZookeeper;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #passing = Promise.resolve();

  constructor(tickMs: number) {
    this.#servers = new SimulatedZookeeper(this.#world, new SeededRandom(1), {
      members: 1,
      drift: 0,
      tickMs,
      syncMs: tickMs,
      hopMs: 0,
      lagMs: () => 0,
      standsStillUntil: () => 0,
      agreed: () => {},
    });
    this.#server = createServer((socket) => this.#serve(socket));
  }

  async start(): Promise<string> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    return `127.0.0.1:${(this.#server.address() as { readonly port: number }).port}`;
  }

  async stop(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
    await this.#passing;
  }

  /** So much of its time passes. */
  pass(ms: number): Promise<void> {
    return (this.#passing = this.#passing.then(async () => {
      const end = this.#world.now + ms;
      this.#world.schedule(end, () => {});
      await this.#world.run(
        () => this.#world.now >= end,
        () => {},
      );
    }));
  }

  #serve(socket: Socket): void {
    this.#sockets.add(socket);
    const connection = this.#servers.members[0]?.accept({
      send: (_, __, bytes) => void socket.write(bytes),
      end: () => void socket.end(),
    }) as ServerConnection;
    socket.on('error', () => {});
    socket.on('close', () => {
      this.#sockets.delete(socket);
      connection.close();
    });
    socket.on('data', (bytes) => {
      connection.received(bytes);
      void this.pass(0.01);
    });
  }
}
