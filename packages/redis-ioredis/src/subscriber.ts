import { shareListener } from '@locks/core/backend';
import type { ShardSubscriptionEvents, SubscriptionEvents } from '@locks/redis-protocol';
import { refusedLogin } from '@locks/redis-protocol/kit';
import type { Cluster, Redis } from 'ioredis';

export interface IoredisSubscriber {
  /** Resolves when the channel is listened to for the first time. */
  readonly ready: Promise<void>;
  readonly close: () => void;
}

const MAX_PAUSE_MS = 2000;

/** Opens a connection that listens to one channel until closed, and connects again whenever it is lost. */
export function openSubscriber(
  client: Redis | Cluster,
  channel: string,
  events: SubscriptionEvents,
): IoredisSubscriber {
  const retry = (times: number): number => Math.min(MAX_PAUSE_MS, 50 * 2 ** Math.min(times, 10));
  const connection =
    'nodes' in client
      ? client.duplicate([], { lazyConnect: true, clusterRetryStrategy: retry, enableOfflineQueue: true })
      : client.duplicate({
          lazyConnect: true,
          retryStrategy: retry,
          reconnectOnError: null,
          autoResubscribe: false,
          maxRetriesPerRequest: null,
          enableOfflineQueue: true,
          commandTimeout: undefined,
        });
  connection.on('message', (from: string, text: string) => {
    if (from === channel) events.message(text);
  });
  let listening = false;
  const ready = new Promise<void>((resolve, reject) => {
    const listen = (): void => {
      connection.subscribe(channel).then(() => {
        if (listening) events.restored();
        listening = true;
        resolve();
      }, reject);
    };
    connection.on('ready', listen);
    // A cluster client moves its subscriptions to another node by itself.
    if ('nodes' in client) connection.on('+subscriber', () => listening && events.restored());
    // The connection opens again by itself; until then the checks serve the waiters.
    connection.on('error', (error: Error) => {
      if (refusedLogin(error) !== undefined) reject(refusedLogin(error));
    });
    connection.on('end', () => reject(new Error('the subscriber has ended')));
  });
  connection.connect().catch(() => undefined); // `ready` rejects, or the client tries again.
  return { ready, close: endWith(client, connection) };
}

/**
 * Ends a connection while the user's client has ended: alone it would keep the process alive. Returns a function that ends it
 * for good.
 */
export function endWith(client: Redis | Cluster, connection: Redis | Cluster): () => void {
  const end = (): void => connection.disconnect();
  const ready = (): void => {
    if (connection.status === 'end') connection.connect().catch(() => undefined); // The client tries again.
  };
  const endings = [shareListener(client, 'end', end), shareListener(client, 'ready', ready)];
  return () => {
    for (const stop of endings) stop();
    end();
  };
}

/**
 * Opens a connection to one node of a cluster that listens to a sharded channel, and to the plain channel of the same name,
 * until it is lost or the node has the slot of the channel no longer.
 */
export function openShardSubscriber(
  node: Redis,
  channel: string,
  events: ShardSubscriptionEvents,
): IoredisSubscriber {
  const connection = node.duplicate({
    lazyConnect: true,
    retryStrategy: () => null,
    reconnectOnError: null,
    keyPrefix: '',
  });
  const heard = (_: string, text: string): void => events.message(text);
  connection.on('message', heard);
  connection.on('smessage', heard);
  let listening = false;
  let closed = false;
  const close = (): void => {
    closed = true;
    connection.disconnect();
  };
  const ready = new Promise<void>((resolve, reject) => {
    let stop = (): void => undefined;
    const lost = (error: Error = new Error('the subscriber has ended')): void => {
      stop();
      reject(refusedLogin(error) ?? error);
      if (closed) return;
      close();
      if (listening) events.lost();
    };
    connection.on('error', lost);
    connection.on('end', lost);
    // The connection is closed with its node: alone it would keep the process alive.
    stop = shareListener(node, 'end', () => lost());
    // The channel belongs to another node: this one refused it, which version 5 of the client reports in no other way, or took
    // it away, which that version reports as an error.
    connection.on('moved', () => lost(new Error('MOVED')));
    const listen = async (): Promise<void> => {
      await connection.connect();
      await connection.ssubscribe(channel);
      await connection.subscribe(channel);
      listening = !closed;
      resolve();
    };
    listen().catch(lost);
  });
  return { ready, close };
}
