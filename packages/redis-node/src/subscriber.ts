import type { SubscriptionEvents } from '@locks/redis-protocol';
import { end, type Recognised, type StandaloneClient } from './clients.ts';

export interface Subscriber {
  /** When the channel is listened to for the first time. */
  readonly ready: Promise<void>;
  readonly close: () => void;
}

const longestPauseMs = 2000;
/** What tells that a subscription may have been moved to another node. */
const restoredEvents = { sentinel: ['ready'], cluster: ['node-ready'] } as const;

/** Listens to one channel, whatever happens to its connection, until closed. */
export function openSubscriber(to: Recognised, channel: string, events: SubscriptionEvents): Subscriber {
  return to.kind === 'standalone'
    ? onOwnConnection(to.client, channel, events)
    : throughClient(to, channel, events);
}

/** Clients of Sentinel and of a cluster keep a connection of its own for subscriptions. */
function throughClient(
  { kind, client }: Exclude<Recognised, { kind: 'standalone' }>,
  channel: string,
  events: SubscriptionEvents,
): Subscriber {
  let listening = false;
  const heard = (message: string): void => events.message(message);
  const restored = (): void => {
    if (listening) events.restored();
  };
  for (const event of restoredEvents[kind]) client.on(event, restored);
  const subscribed = client.subscribe(channel, heard);
  const ready = subscribed.then(() => {
    listening = true;
  });
  const close = (): void => {
    listening = false;
    for (const event of restoredEvents[kind]) client.off(event, restored);
    // Not before the other is done: it would open the connection again. And a client that was ended needs no word.
    subscribed
      .then(() => (client.isOpen ? client.unsubscribe(channel, heard) : undefined))
      .catch(() => undefined);
  };
  return { ready, close };
}

function onOwnConnection(client: StandaloneClient, channel: string, events: SubscriptionEvents): Subscriber {
  const connection = client.duplicate(persistent(client));
  connection.on('error', () => undefined); // It connects again by itself; until then waiters live by their checks.
  let closed = false;
  let listening = false;
  // The client forgets a connection that comes about after it was destroyed, and leaves it open: its end waits for that.
  let connecting = true;
  const close = (): void => {
    closed = true;
    if (!connecting) void end(connection);
  };
  const settled = (): void => {
    connecting = false;
    if (closed) void end(connection);
  };
  connection.on('connect', settled);
  connection.on('error', settled);
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
      settled();
    }
  };
  // The client subscribes again by itself; what was published meanwhile is lost.
  connection.on('ready', () => listening && events.restored());
  return { ready: listen(), close };
}

function persistent(client: object): object {
  const { options } = client as { options?: { socket?: object } };
  const reconnectStrategy = (retries: number): number =>
    Math.min(longestPauseMs, 50 * 2 ** Math.min(retries, 10));
  return {
    socket: { ...options?.socket, reconnectStrategy },
    pingInterval: undefined,
    disableOfflineQueue: false,
  };
}
