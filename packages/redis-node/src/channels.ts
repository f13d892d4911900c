import { shareListener } from '@locks/core/backend';
import type { ChannelConnection, ChannelEvents } from '@locks/redis-protocol';
import { endClient, type RecognisedClient, type SentinelClient, type StandaloneClient } from './clients.ts';
import { type NodeRedisSubscriber, orRefusal, persistent } from './subscriber.ts';

/** Opens a connection that listens to channels which change, until it is closed or lost: it does not connect again. */
export function openChannels(
  to: RecognisedClient,
  isSharded: boolean,
  events: ChannelEvents,
): NodeRedisSubscriber & ChannelConnection {
  return to.kind === 'sentinel'
    ? throughClient(to.client, events)
    : onOwnConnection(to.client as StandaloneClient, isSharded, events);
}

/** Subscribes through the client: that of Sentinel keeps a connection for subscriptions, and moves it to a new master. */
function throughClient(
  client: SentinelClient,
  { message, lost }: ChannelEvents,
): NodeRedisSubscriber & ChannelConnection {
  const heard = (text: string, channel: string): void => message(channel, text);
  const channels = new Set<string>();
  const close = (): void => {
    stop();
    for (const channel of channels) void remove(channel).catch(() => undefined);
  };
  // Messages from before may have been missed.
  const moved = (): void => {
    close();
    lost();
  };
  const remove = async (channel: string): Promise<void> => {
    channels.delete(channel);
    // A client that has ended has no subscription.
    if (client.isOpen) await client.unsubscribe(channel, heard);
  };
  const stop = shareListener(client, 'ready', moved);
  return {
    ready: Promise.resolve(),
    close,
    remove,
    async add(channel) {
      channels.add(channel);
      await orRefusal(client, client.subscribe(channel, heard));
    },
  };
}

function onOwnConnection(
  client: StandaloneClient,
  isSharded: boolean,
  { message, lost }: ChannelEvents,
): NodeRedisSubscriber & ChannelConnection {
  const connection = client.duplicate(persistent(client, false));
  // Core keeps the process alive while anybody waits.
  connection.unref();
  const heard = (text: string, channel: string): void => message(channel, text);
  let isListening = false;
  let isConnecting = true;
  let isClosed = false;
  const close = (): void => {
    isClosed = true;
    // A client is not ended while it connects, which would leave that connection open.
    if (!isConnecting) void endClient(connection);
  };
  const end = (): void => {
    if (isClosed) return;
    close();
    if (isListening) lost();
  };
  connection.on('error', end);
  // The server took a channel away.
  connection.on('sharded-channel-moved', end);
  const connect = async (): Promise<void> => {
    try {
      await connection.connect();
    } finally {
      isConnecting = false;
      if (isClosed) await endClient(connection);
    }
    if (isClosed) throw new Error('the subscriber has ended');
    isListening = true;
  };
  return {
    ready: orRefusal(connection, connect()),
    close,
    async add(channel) {
      await (isSharded ? connection.sSubscribe(channel, heard) : connection.subscribe(channel, heard));
    },
    async remove(channel) {
      await (isSharded ? connection.sUnsubscribe(channel, heard) : connection.unsubscribe(channel, heard));
    },
  };
}
