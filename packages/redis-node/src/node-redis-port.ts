import { errorMonitor } from 'node:events';
import { clientClosedError, invalidArgument, shareListener } from '@locks/core/backend';
import {
  LoginWatch,
  portPerClient,
  type RedisCommand,
  type RedisPort,
  type ShardSubscriptionEvents,
  type SideConnection,
  type SubscriptionEvents,
} from '@locks/redis-protocol';
import { OpenedConnections } from '@locks/redis-protocol/kit';
import { checkClient } from './check-client.ts';
import {
  type ClusterClient,
  COMMAND_OPTIONS,
  endClient,
  isReady,
  type NodeRedisClient,
  type RecognisedClient,
} from './clients.ts';
import { openShardSubscriber, openSubscriber, orRefusal } from './subscriber.ts';

/** The events that report a lost connection. */
const LOST_EVENTS = {
  standalone: ['reconnecting', 'end'],
  sentinel: ['reconnecting', 'end', 'topology-change', 'client-error'],
  cluster: ['node-reconnecting', 'node-disconnect', 'disconnect'],
} as const;
/** The events with an error of a connection. An `error` that nobody listens to ends the process: it is only watched. */
const ERROR_EVENTS = {
  standalone: [errorMonitor],
  sentinel: [errorMonitor, 'client-error'],
  cluster: [errorMonitor, 'node-error'],
} as const;
const READY_EVENTS = { standalone: 'ready', sentinel: 'ready', cluster: 'node-ready' } as const;

/**
 * The number of commands of one iteration of the event loop that are written together. The client would write all of a turn at once:
 * with 64 locks at a time client and server then work in turns, and each waits for the other.
 */
const COMMANDS_TOGETHER = 16;

/** The port of a node-redis client. */
export class NodeRedisPort implements RedisPort {
  readonly name = 'redis-node';
  readonly cluster: boolean;
  readonly isPolled = false;
  readonly repeatsRefused = false;
  readonly keyPrefix: string;
  reconnects = 0;
  readonly #recognised: RecognisedClient;
  readonly #login = new LoginWatch();
  readonly #onError = (error: unknown): void => {
    // Sentinel's client tells the node beside the error.
    const failure = error instanceof Error ? error : (error as { error?: Error } | undefined)?.error;
    if (!isReady(this.#recognised)) this.#login.failed(failure);
    // The error is that of one node of a cluster.
    else this.#login.lastError = failure;
  };
  readonly #opened = new OpenedConnections();
  /** Each ends a listener. */
  readonly #listening: readonly (() => void)[];
  #isClosed = false;
  #isClientClosed: boolean | undefined;
  /** Whether the client was ever open: one that is not was never connected, or closed. */
  #wasOpen: boolean;
  readonly #accepted = (): void => {
    this.#wasOpen = true;
    this.#login.accepted();
  };
  #sentThisTurn = 0;
  readonly #delayed: (() => void)[] = [];
  readonly #nextTurn = (): void => {
    this.#sentThisTurn = 0;
    for (const go of this.#delayed.splice(0, COMMANDS_TOGETHER)) go();
  };
  readonly #onLost = (): void => {
    this.reconnects++;
  };

  constructor(recognised: RecognisedClient) {
    this.#recognised = recognised;
    this.cluster = recognised.kind === 'cluster';
    const keyPrefix = recognised.client._keyPrefix ?? '';
    if (typeof keyPrefix !== 'string') {
      throw invalidArgument('the keyPrefix of the client is a Buffer: locks need a string');
    }
    this.keyPrefix = keyPrefix;
    const { client, kind } = recognised;
    this.#listening = [
      ...LOST_EVENTS[kind].map((event) => shareListener(client, event, this.#onLost)),
      ...ERROR_EVENTS[kind].map((event) => shareListener(client, event, this.#onError)),
      shareListener(client, READY_EVENTS[kind], this.#accepted),
    ];
    this.#wasOpen = client.isOpen;
  }

  // The function is not async, to save a promise for each command.
  send(key: string, command: RedisCommand): Promise<unknown> {
    this.#sentThisTurn += 1;
    if (this.#sentThisTurn === 1) setImmediate(this.#nextTurn);
    if (this.#sentThisTurn <= COMMANDS_TOGETHER) return this.#send(key, command);
    return new Promise((resolve) => {
      this.#delayed.push(() => resolve(this.send(key, command)));
    });
  }

  #send(key: string, command: RedisCommand): Promise<unknown> {
    const recognised = this.#recognised;
    if (isReady(recognised)) return send(recognised, key, command);
    return this.#whenReady(() => send(recognised, key, command));
  }

  async #whenReady(send: () => Promise<unknown>): Promise<unknown> {
    if (!this.#recognised.client.isOpen) throw this.#closedError();
    return this.#login.outcomeOf(send);
  }

  isClientClosed(): boolean {
    if (!this.#wasOpen || this.#recognised.client.isOpen) return false;
    // An error of the connection before the end means that the client has given up by itself; later ones mean nothing.
    return (this.#isClientClosed ??= this.#login.ended === undefined);
  }

  #closedError(): Error {
    if (this.isClientClosed()) return clientClosedError();
    return this.#login.ended ?? notConnected();
  }

  connectionError(slot?: number): unknown {
    const recognised = this.#recognised;
    const node = slot !== undefined && recognised.kind === 'cluster' && recognised.client.slots[slot]?.master;
    const isConnected = node ? node.client?.isReady : isReady(recognised);
    return isConnected ? undefined : this.#login.lastError;
  }

  masters(): readonly ((command: RedisCommand) => Promise<unknown>)[] {
    const recognised = this.#recognised;
    if (recognised.kind !== 'cluster') return [(command) => this.send('', command)];
    const { client } = recognised;
    if (!client.isOpen) throw this.#closedError();
    return client.masters.map((master) => async (command: RedisCommand) => {
      forgetClosedNodes(client);
      const node = await client.nodeClient(master);
      return node.sendCommand(command, COMMAND_OPTIONS);
    });
  }

  subscribe(channel: string, events: SubscriptionEvents): Promise<void> {
    return this.#opened.whenReady(openSubscriber(this.#recognised, channel, events));
  }

  masterOf(slot: number): string | undefined {
    return (this.#recognised.client as ClusterClient).slots[slot]?.master.address;
  }

  async subscribeAt(master: string, channel: string, events: ShardSubscriptionEvents): Promise<void> {
    const client = this.#recognised.client as ClusterClient;
    const found = client.masters.find(({ address }) => address === master);
    if (found === undefined) throw new Error(`no connection to ${master}`);
    const node = await client.nodeClient(found);
    if (this.#isClosed) return;
    const lost = (): void => {
      this.#opened.forget(subscriber.close);
      events.lost();
    };
    const subscriber = openShardSubscriber(node, channel, { ...events, lost });
    await this.#opened.whenReady(subscriber);
  }

  async openSide(): Promise<SideConnection> {
    const recognised = this.#recognised;
    if (recognised.kind === 'cluster') throw new TypeError('a cluster has no side connection');
    const side: RecognisedClient =
      recognised.kind === 'sentinel'
        ? { kind: 'sentinel', client: recognised.client.duplicate({ masterPoolSize: 1 }) }
        : { kind: 'standalone', client: recognised.client.duplicate() };
    if (side.kind === 'standalone') side.client.unref();
    side.client.on('error', () => undefined); // The commands of this client reject by themselves.
    let closed = false;
    const close = (): void => {
      closed = true;
      this.#opened.forget(close);
      void endClient(side.client);
    };
    this.#opened.add(close);
    try {
      await orRefusal(side.client, side.client.connect());
    } finally {
      // The connection may have opened after the close.
      if (closed) await endClient(side.client);
    }
    return { send: (command) => send(side, '', command), close };
  }

  close(): Promise<void> {
    this.#isClosed = true;
    this.#opened.close();
    for (const end of this.#listening) end();
    return Promise.resolve();
  }
}

function notConnected(): Error {
  return invalidArgument(
    'the redis client is not connected: call `await client.connect()` before using locks',
  );
}

// Raw commands skip the client's argument parsers and reply transformers. Keys have their prefix already.
function send(to: RecognisedClient, key: string, command: RedisCommand): Promise<unknown> {
  switch (to.kind) {
    case 'standalone':
      return to.client.sendCommand(command, COMMAND_OPTIONS);
    case 'sentinel':
      return to.client.sendCommand(false, command, COMMAND_OPTIONS);
    case 'cluster':
      return to.client.sendCommand(key, false, command, COMMAND_OPTIONS).catch((error: unknown) => {
        forgetClosedNodes(to.client);
        throw error;
      });
    default:
      return to satisfies never;
  }
}

/**
 * A connection to a node that breaks in its handshake closes the client of that node for good, and the cluster client keeps it:
 * every later command to the node would fail. Without the closed client the next command connects anew.
 */
function forgetClosedNodes(client: ClusterClient): void {
  if (!client.isOpen) return;
  for (const node of client.masters) {
    if (node.client?.isOpen === false && node.connectPromise === undefined) node.client = undefined;
  }
}

/**
 * The port of a client that functions are called with.
 *
 * @throws LockError `LOCK_INVALID_ARGUMENT`
 */
export const portOf: (client: NodeRedisClient) => NodeRedisPort = portPerClient(
  (client) => new NodeRedisPort(checkClient(client)),
);
