import { invalidArgument } from '@locks/core/backend';
import type { ClusterClient, RecognisedClient, SentinelClient, StandaloneClient } from './clients.ts';

/** Refuses what could never lock, and finds out which of the three kinds the client is. */
export function checkClient(client: unknown): RecognisedClient {
  if (typeof client === 'string' || client instanceof URL) {
    throw invalidArgument(
      'the client is an address: pass a client, createClient({ url }) of the package redis',
    );
  }
  if (client instanceof Promise) {
    throw invalidArgument('the client is a promise: await it first, `await createClient().connect()`');
  }
  // `Object` makes an object of what is none, so that all else is refused alike.
  const methods = Object(client) as Record<string, unknown>;
  if ('defineCommand' in methods && 'status' in methods) {
    throw invalidArgument('the client is one of ioredis: use @locks/redis-ioredis for it');
  }
  const isClient = ['sendCommand', 'duplicate', 'connect'].every(
    (name) => typeof methods[name] === 'function',
  );
  if (!isClient || typeof methods['isOpen'] !== 'boolean') {
    throw invalidArgument(
      `the client is ${describe(client)}: pass one of createClient, createSentinel or createCluster`,
    );
  }
  if (methods['isPubSubActive'] === true) {
    throw invalidArgument(
      'the client is used for subscriptions: pass one for ordinary commands, for example client.duplicate()',
    );
  }
  if ('nodeClient' in methods) return { kind: 'cluster', client: client as unknown as ClusterClient };
  if ('getSentinelNode' in methods) return { kind: 'sentinel', client: client as unknown as SentinelClient };
  return { kind: 'standalone', client: client as unknown as StandaloneClient };
}

function describe(value: unknown): string {
  if (typeof value === 'object' && value !== null) {
    return `an object with the keys ${Object.keys(value).slice(0, 8).join(', ') || '(none)'}`;
  }
  return String(value);
}
