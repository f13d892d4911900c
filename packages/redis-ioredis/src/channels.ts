import { shareListener } from '@locks/core/backend';
import type { ChannelConnection, ChannelEvents } from '@locks/redis-protocol';
import { refusedLogin } from '@locks/redis-protocol/kit';
import type { Redis } from 'ioredis';
import type { IoredisSubscriber } from './subscriber.ts';

/** Opens a connection that listens to channels which change, until it is closed or lost: it does not connect again. */
export function openChannels(
  client: Redis,
  isSharded: boolean,
  events: ChannelEvents,
): IoredisSubscriber & ChannelConnection {
  const connection = client.duplicate({
    lazyConnect: true,
    retryStrategy: () => null,
    reconnectOnError: null,
    autoResubscribe: false,
    maxRetriesPerRequest: null,
    enableOfflineQueue: true,
    commandTimeout: undefined,
    keyPrefix: '',
  });
  connection.on(isSharded ? 'smessage' : 'message', events.message);
  let isReady = false;
  let isClosed = false;
  let stop = (): void => undefined;
  const close = (): void => {
    isClosed = true;
    stop();
    connection.disconnect();
  };
  const ready = new Promise<void>((resolve, reject) => {
    const lost = (error: Error = new Error('the subscriber has ended')): void => {
      reject(refusedLogin(error) ?? error);
      if (isClosed) return;
      close();
      if (isReady) events.lost();
    };
    connection.on('error', lost);
    connection.on('end', lost);
    // The connection is closed with its client: alone it would keep the process alive.
    stop = shareListener(client, 'end', () => lost());
    // A sharded channel belongs to another node: this one refused it, or took it away.
    connection.on('moved', () => lost(new Error('MOVED')));
    connection.connect().then(() => {
      isReady = !isClosed;
      resolve();
    }, lost);
  });
  return {
    ready,
    close,
    async add(channel) {
      await (isSharded ? connection.ssubscribe(channel) : connection.subscribe(channel));
    },
    async remove(channel) {
      await (isSharded ? connection.sunsubscribe(channel) : connection.unsubscribe(channel));
    },
  };
}
