import {
  invalidArgument,
  type RedisCommand,
  type RedisPort,
  type SideConnection,
  type SubscriptionEvents,
} from '@locks/redis-protocol';
import { end, plainReplies, type Recognised } from './clients.ts';
import { openSubscriber } from './subscriber.ts';

const lostEvents = {
  standalone: ['reconnecting', 'end'],
  sentinel: ['reconnecting', 'end', 'topology-change', 'client-error'],
  cluster: ['node-reconnecting', 'node-disconnect', 'disconnect'],
} as const;

/**
 * How many commands of one turn of the event loop leave together. The client writes all of a turn in one go: with 64
 * locks at a time client and server then take turns at working, and each waits for the other.
 */
const COMMANDS_TOGETHER = 16;

/** node-redis as the protocol sees it. */
export class NodeRedisPort implements RedisPort {
  readonly name = 'redis-node';
  readonly cluster: boolean;
  readonly keyPrefix: string;
  reconnects = 0;
  readonly #of: Recognised;
  readonly #opened = new Set<() => void>();
  #thisTurn = 0;
  readonly #held: (() => void)[] = [];
  readonly #nextTurn = (): void => {
    this.#thisTurn = 0;
    for (const go of this.#held.splice(0, COMMANDS_TOGETHER)) go();
  };
  readonly #onLost = (): void => {
    this.reconnects++;
  };

  constructor(recognised: Recognised) {
    this.#of = recognised;
    this.cluster = recognised.kind === 'cluster';
    const keyPrefix = recognised.client._keyPrefix ?? '';
    if (typeof keyPrefix !== 'string') {
      throw invalidArgument('the keyPrefix of the client is a Buffer: locks need a string');
    }
    this.keyPrefix = keyPrefix;
    for (const event of lostEvents[recognised.kind]) recognised.client.on(event, this.#onLost);
  }

  assertUsable(): void {
    if (this.#of.client.isOpen) return;
    throw invalidArgument(
      'the redis client is not connected: call `await client.connect()` before using locks',
    );
  }

  // Not async: one promise less for each command.
  send(key: string, command: RedisCommand): Promise<unknown> {
    this.#thisTurn += 1;
    if (this.#thisTurn === 1) setImmediate(this.#nextTurn);
    if (this.#thisTurn <= COMMANDS_TOGETHER) return send(this.#of, key, command);
    return new Promise((resolve) => {
      this.#held.push(() => resolve(this.send(key, command)));
    });
  }

  masters(): readonly ((command: RedisCommand) => Promise<unknown>)[] {
    const recognised = this.#of;
    if (recognised.kind !== 'cluster') return [(command) => this.send('', command)];
    return recognised.client.masters.map((master) => async (command: RedisCommand) => {
      const node = await recognised.client.nodeClient(master);
      return node.sendCommand(command, plainReplies);
    });
  }

  async subscribe(channel: string, events: SubscriptionEvents): Promise<void> {
    const subscriber = openSubscriber(this.#of, channel, events);
    this.#opened.add(subscriber.close);
    try {
      await subscriber.ready;
    } catch (error) {
      this.#opened.delete(subscriber.close);
      subscriber.close();
      throw error;
    }
  }

  async openSide(): Promise<SideConnection> {
    const recognised = this.#of;
    if (recognised.kind === 'cluster') throw new TypeError('a cluster has no side connection');
    const side: Recognised =
      recognised.kind === 'sentinel'
        ? { kind: 'sentinel', client: recognised.client.duplicate({ masterPoolSize: 1 }) }
        : { kind: 'standalone', client: recognised.client.duplicate() };
    side.client.on('error', () => undefined); // Each command of it rejects by itself.
    let closed = false;
    const close = (): void => {
      closed = true;
      this.#opened.delete(close);
      void end(side.client);
    };
    this.#opened.add(close);
    try {
      await side.client.connect();
    } finally {
      if (closed) await end(side.client); // A connection that came about since then.
    }
    return { send: (command) => send(side, '', command), close };
  }

  close(): Promise<void> {
    for (const close of this.#opened) close();
    this.#opened.clear();
    for (const event of lostEvents[this.#of.kind]) this.#of.client.off(event, this.#onLost);
    return Promise.resolve();
  }
}

// Raw commands skip the client's argument parsers and reply transformers. The prefix is in the keys already.
function send(to: Recognised, key: string, command: RedisCommand): Promise<unknown> {
  switch (to.kind) {
    case 'standalone':
      return to.client.sendCommand(command, plainReplies);
    case 'sentinel':
      return to.client.sendCommand(false, command, plainReplies);
    case 'cluster':
      return to.client.sendCommand(key, false, command, plainReplies);
  }
}
