import { errorMonitor } from 'node:events';
import { shareListener } from '@locks/core/backend';
import type { ShardSubscriptionEvents, SubscriptionEvents } from '@locks/redis-protocol';
import { refusedLogin } from '@locks/redis-protocol/kit';
import { endClient, type RecognisedClient, type StandaloneClient } from './clients.ts';

export interface NodeRedisSubscriber {
  /** Resolves when the channel is listened to for the first time. */
  readonly ready: Promise<void>;
  readonly close: () => void;
}

const MAX_PAUSE_MS = 2000;
/** The events after which a subscription may have moved to another node. */
const RESTORED_EVENTS = { sentinel: ['ready'], cluster: ['node-ready'] } as const;

/** Listens to one channel until closed, and again after each lost connection. */
export function openSubscriber(
  to: RecognisedClient,
  channel: string,
  events: SubscriptionEvents,
): NodeRedisSubscriber {
  return to.kind === 'standalone'
    ? onOwnConnection(to.client, channel, events)
    : throughClient(to, channel, events);
}

/** Subscribes through the client: clients of Sentinel and of a cluster keep a connection for subscriptions. */
function throughClient(
  { kind, client }: Exclude<RecognisedClient, { kind: 'standalone' }>,
  channel: string,
  events: SubscriptionEvents,
): NodeRedisSubscriber {
  let listening = false;
  const heard = (message: string): void => events.message(message);
  const restored = (): void => {
    if (listening) events.restored();
  };
  const endings = RESTORED_EVENTS[kind].map((event) => shareListener(client, event, restored));
  const subscribed = client.subscribe(channel, heard);
  const ready = orRefusal(client, subscribed).then(() => {
    listening = true;
  });
  const close = (): void => {
    listening = false;
    for (const end of endings) end();
    // The unsubscribe follows the end of the subscribe, which would open the connection again. A client that has ended has no
    // subscription.
    subscribed
      .then(() => (client.isOpen ? client.unsubscribe(channel, heard) : undefined))
      .catch(() => undefined);
  };
  return { ready, close };
}

function onOwnConnection(
  client: StandaloneClient,
  channel: string,
  events: SubscriptionEvents,
): NodeRedisSubscriber {
  const connection = client.duplicate(persistent(client, (retries) => client.isOpen && retry(retries)));
  // Core keeps the process alive while anybody waits.
  connection.unref();
  connection.on('error', () => undefined); // The client connects again by itself; until then the checks serve the waiters.
  let closed = false;
  let listening = false;
  // A client that is destroyed while it connects leaves that connection open: destroy it only when the connect is done.
  let connecting = true;
  const close = (): void => {
    closed = true;
    if (!connecting) void endClient(connection);
  };
  const connectDone = (): void => {
    connecting = false;
    if (closed) void endClient(connection);
  };
  connection.on('connect', connectDone);
  connection.on('error', connectDone);
  connection.on('reconnecting', () => {
    connecting = true;
  });
  const listen = async (): Promise<void> => {
    try {
      await connection.connect();
      if (closed) return;
      await connection.subscribe(channel, (message) => events.message(message));
      listening = true;
    } finally {
      connectDone();
    }
  };
  // The client subscribes again by itself; messages published meanwhile are lost.
  connection.on('ready', () => listening && events.restored());
  return { ready: orRefusal(connection, listen()), close };
}

/**
 * Opens a connection to one node of a cluster that listens to a sharded channel, and to the plain channel of the same name,
 * until it is lost or the node has the slot of the channel no longer.
 */
export function openShardSubscriber(
  node: StandaloneClient,
  channel: string,
  events: ShardSubscriptionEvents,
): NodeRedisSubscriber {
  const connection = node.duplicate(persistent(node, false));
  connection.unref();
  const heard = (message: string): void => events.message(message);
  let listening = false;
  let connecting = true;
  let closed = false;
  const close = (): void => {
    closed = true;
    // A client is not ended while it connects, which would leave that connection open.
    if (!connecting) void endClient(connection);
  };
  const lost = (): void => {
    if (closed) return;
    close();
    if (listening) events.lost();
  };
  connection.on('error', lost);
  // The server took the channel away.
  connection.on('sharded-channel-moved', lost);
  const listen = async (): Promise<void> => {
    try {
      await connection.connect();
    } finally {
      connecting = false;
      if (closed) await endClient(connection);
    }
    await connection.sSubscribe(channel, heard);
    await connection.subscribe(channel, heard);
    if (closed) throw new Error('the subscriber has ended');
    listening = true;
  };
  return { ready: orRefusal(connection, listen()), close };
}

/**
 * Rejects with the refusal of a client's login: such a client tries again for ever, and requests would wait for its connection.
 */
export async function orRefusal(
  client: RecognisedClient['client'],
  connected: Promise<unknown>,
): Promise<void> {
  let onError: (error: unknown) => void = () => undefined;
  const refused = new Promise<never>((_, reject) => {
    onError = (error) => {
      const refusal = refusedLogin(error);
      if (refusal !== undefined) reject(refusal);
    };
  });
  const stop = shareListener(client, errorMonitor, onError);
  try {
    await Promise.race([connected, refused]);
  } finally {
    stop();
  }
}

const retry = (retries: number): number => Math.min(MAX_PAUSE_MS, 50 * 2 ** Math.min(retries, 10));

export function persistent(
  client: object,
  reconnectStrategy: false | ((retries: number) => number | false),
): object {
  const { options } = client as { options?: { socket?: object } };
  return {
    socket: { ...options?.socket, reconnectStrategy },
    pingInterval: undefined,
    disableOfflineQueue: false,
  };
}
