import type { SubscriptionEvents } from '@locks/redis-protocol';
import { end, type Recognised } from './clients.ts';

export interface Subscriber {
  /** When the channel is listened to for the first time. */
  readonly ready: Promise<void>;
  readonly close: () => void;
}

const longestPauseMs = 2000;
const restoredEvents = {
  standalone: ['ready'],
  sentinel: ['ready', 'topology-change'],
  cluster: ['node-ready'],
} as const;
/** A Sentinel client tells neither, and drops a connection that comes too late by itself. */
const connectingEvents = {
  standalone: ['reconnecting'],
  sentinel: [],
  cluster: ['node-reconnecting'],
} as const;
const settledEvents = {
  standalone: ['connect', 'error'],
  sentinel: [],
  cluster: ['node-connect', 'node-error'],
} as const;

/** A connection of our own that listens to one channel, whatever happens to it, until closed. */
export function openSubscriber(
  { kind, client }: Recognised,
  channel: string,
  events: SubscriptionEvents,
): Subscriber {
  const connection = client.duplicate(
    kind === 'cluster' ? { minimizeConnections: true } : kind === 'sentinel' ? {} : persistent(client),
  );
  connection.on('error', () => undefined); // It connects again by itself; until then waiters live by their checks.
  let closed = false;
  let listening = false;
  // The client forgets a connection that comes about after it was destroyed, and leaves it open: its end waits for that.
  let connecting = kind === 'standalone';
  const close = (): void => {
    closed = true;
    if (!connecting) void end(connection);
  };
  for (const event of connectingEvents[kind]) {
    connection.on(event, () => {
      connecting = true;
    });
  }
  for (const event of settledEvents[kind]) {
    connection.on(event, () => {
      connecting = false;
      if (closed) void end(connection);
    });
  }
  const listen = async (): Promise<void> => {
    try {
      await connection.connect();
      if (closed) return;
      connecting = kind === 'cluster'; // It connects to the node of its subscriptions only now.
      await connection.subscribe(channel, (message) => events.message(message));
      listening = true;
    } finally {
      connecting = false;
      if (closed) await end(connection);
    }
  };
  // The client subscribes again by itself; what was published meanwhile is lost.
  for (const event of restoredEvents[kind]) connection.on(event, () => listening && events.restored());
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
