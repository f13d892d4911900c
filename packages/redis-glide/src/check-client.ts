import { invalidArgument, mustBe } from '@locks/core/backend';
import type { GlideClusterConnection, GlideConnection, RecognisedGlideClient } from './clients.ts';

type Shape = Partial<
  Record<
    | 'customCommand'
    | 'close'
    | 'subscribe'
    | 'ssubscribe'
    | 'isClosed'
    | 'config'
    | 'addresses'
    | 'isOpen'
    | 'defineCommand',
    unknown
  >
>;

/** Refuses a client that could never lock, and finds out which of the two kinds it is. */
export function checkClient(client: unknown): RecognisedGlideClient {
  if (client instanceof Promise) {
    throw invalidArgument('the client is a promise: await it first, `await GlideClient.createClient(…)`');
  }
  if (typeof client === 'function' && 'createClient' in client) {
    throw invalidArgument('the client is a class: pass what `await GlideClient.createClient(…)` gives');
  }
  if (typeof client !== 'object' || client === null) throw notOurs(client);
  const shape = client as Shape;
  if ('defineCommand' in shape && 'status' in shape) {
    throw invalidArgument('the client is one of ioredis: use @locks/redis-ioredis for it');
  }
  if (typeof shape.isOpen === 'boolean') {
    throw invalidArgument(
      'the client is one of the package redis (node-redis): use @locks/redis-node for it',
    );
  }
  if (Array.isArray(shape.addresses)) {
    throw invalidArgument(
      'the client is a configuration: pass what `await GlideClient.createClient(configuration)` gives',
    );
  }
  const isClient = [shape.customCommand, shape.close].every((method) => typeof method === 'function');
  const config = shape.config as { readonly addresses?: unknown; readonly readOnly?: unknown } | undefined;
  if (!isClient || typeof shape.isClosed !== 'boolean' || !Array.isArray(config?.addresses)) {
    throw notOurs(client);
  }
  if (typeof shape.subscribe !== 'function') {
    throw invalidArgument('the client is of an older GLIDE: locks need @valkey/valkey-glide 2.5.2 or newer');
  }
  if (shape.isClosed) throw closedError();
  if (config.readOnly === true) {
    throw invalidArgument('the client is read-only (readOnly: true): locks must write, pass another client');
  }
  return typeof shape.ssubscribe === 'function'
    ? { kind: 'cluster', client: client as GlideClusterConnection }
    : { kind: 'standalone', client: client as GlideConnection };
}

function closedError(): Error {
  return invalidArgument('the GLIDE client is closed: pass one that is in use');
}

function notOurs(client: unknown): Error {
  return mustBe(
    'the client, which comes first,',
    'what GlideClient.createClient or GlideClusterClient.createClient of @valkey/valkey-glide gave',
    client,
  );
}
