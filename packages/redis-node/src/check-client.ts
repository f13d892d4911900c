import { invalidArgument, mustBe } from '@locks/core/backend';
import type { ClusterClient, RecognisedClient, SentinelClient, StandaloneClient } from './clients.ts';

/** Refuses a client that could never lock, and finds out which of the three kinds it is. */
export function checkClient(client: unknown): RecognisedClient {
  if (client instanceof Promise) {
    throw invalidArgument('the client is a promise: await it first, `await createClient().connect()`');
  }
  if (typeof client !== 'object' || client === null) throw notOurs(client);
  if ('defineCommand' in client && 'status' in client) {
    throw invalidArgument('the client is one of ioredis: use @locks/redis-ioredis for it');
  }
  const methods = client as Record<string, unknown>;
  const isClient = ['sendCommand', 'duplicate', 'connect'].every(
    (name) => typeof methods[name] === 'function',
  );
  if (!isClient || typeof methods['isOpen'] !== 'boolean') throw notOurs(client);
  if (methods['isPubSubActive'] === true) {
    throw invalidArgument(
      'the client is used for subscriptions: pass one for ordinary commands, for example client.duplicate()',
    );
  }
  if ('nodeClient' in client) return { kind: 'cluster', client: client as unknown as ClusterClient };
  if ('getSentinelNode' in client) return { kind: 'sentinel', client: client as unknown as SentinelClient };
  return { kind: 'standalone', client: client as unknown as StandaloneClient };
}

function notOurs(client: unknown): Error {
  return mustBe(
    'the client, which comes first,',
    'what createClient, createSentinel or createCluster of redis gave',
    client,
  );
}
