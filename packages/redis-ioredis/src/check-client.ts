import { invalidArgument, mustBe } from '@locks/core/backend';
import type { Cluster, Redis } from 'ioredis';

/** A `Redis` or `Cluster` of ioredis 5 or 6. An interface of this package, since the types of the two versions differ. */
export interface IoredisClient {
  readonly status: string;
  readonly isCluster: boolean;
  readonly options: object;
  sendCommand(...args: never[]): unknown;
  duplicate(...args: never[]): unknown;
  defineCommand(...args: never[]): unknown;
}

interface Options {
  readonly scaleReads?: unknown;
  readonly redisOptions?: { readonly readOnly?: unknown };
  readonly readOnly?: unknown;
  readonly role?: unknown;
}

type Shape = Partial<
  Record<'sendCommand' | 'duplicate' | 'defineCommand' | 'status' | 'isOpen' | 'mode', unknown>
>;

/** Refuses a client that could never lock: not of ioredis, one that reads from replicas, or one used otherwise. */
export function checkClient(client: unknown): asserts client is IoredisClient {
  if (typeof client !== 'object' || client === null) throw notOurs(client);
  const shape = client as Shape;
  if (typeof shape.isOpen === 'boolean') {
    throw invalidArgument(
      'the client is one of the package redis (node-redis): use @locks/redis-node for it',
    );
  }
  const isClient = [shape.sendCommand, shape.duplicate, shape.defineCommand].every(
    (method) => typeof method === 'function',
  );
  if (!isClient || typeof shape.status !== 'string') throw notOurs(client);
  const known = client as unknown as Redis | Cluster;
  if (known.status === 'end') throw endedError();
  const options = known.options as Options;
  if (options.scaleReads !== undefined && known.isCluster && options.scaleReads !== 'master') {
    throw invalidArgument(
      "the cluster client reads from replicas (scaleReads): locks need one with scaleReads: 'master'",
    );
  }
  if (options.readOnly === true || options.redisOptions?.readOnly === true) {
    throw invalidArgument('the client is read-only (readOnly: true): locks must write, pass another client');
  }
  if (options.role === 'slave') {
    throw invalidArgument("the client asks Sentinel for a replica (role: 'slave'): locks need the master");
  }
  if (shape.mode === 'subscriber' || shape.mode === 'monitor') {
    throw invalidArgument(
      `the client is in ${shape.mode} mode: pass one for ordinary commands, for example client.duplicate()`,
    );
  }
}

function endedError(): Error {
  return invalidArgument(
    'the ioredis client has ended (quit or disconnect was called, or its retryStrategy gave up): pass one that is in use',
  );
}

function notOurs(client: unknown): Error {
  return mustBe(
    'the client, which comes first,',
    "a Redis or Cluster of ioredis, as new Redis('redis://…') gives",
    client,
  );
}
