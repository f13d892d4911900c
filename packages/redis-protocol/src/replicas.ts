import { type AcquireRequest, answerWithin } from '@locks/core/backend';
import type { CheckedRedisOptions } from './options.ts';
import { holdersKey, type ResourceKeys } from './keys.ts';
import type { RedisCommand, RedisPort, SideConnection } from './port.ts';

interface ReplicaQuery {
  readonly keys: ResourceKeys;
  readonly request: AcquireRequest;
  readonly resolve: (acknowledged: number) => void;
  readonly reject: (error: unknown) => void;
}

/** The time beyond its own limit that a `WAIT` may take before its connection counts as broken. */
const GRACE_MS = 1000;

/**
 * Counts the replicas that have a grant, on a connection of its own, since `WAIT` blocks the connection that sends it.
 * Grants that arrive while one query is under way share the next one.
 */
export class Replicas {
  readonly #port: RedisPort;
  readonly #options: CheckedRedisOptions;
  #side: Promise<SideConnection> | undefined;
  #queries: ReplicaQuery[] = [];
  #running = false;
  #closed = false;

  constructor(port: RedisPort, options: CheckedRedisOptions) {
    this.#port = port;
    this.#options = options;
  }

  /** The number of replicas that have this hold; 0 also if the server of the side connection does not have it itself. */
  acknowledged(keys: ResourceKeys, request: AcquireRequest): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#queries.push({ keys, request, resolve, reject });
      if (!this.#running) void this.#run();
    });
  }

  /** Called before the port closes: later queries are refused and open no connection. */
  close(): void {
    this.#closed = true;
  }

  async #run(): Promise<void> {
    this.#running = true;
    while (this.#queries.length > 0) {
      const queries = this.#queries;
      this.#queries = [];
      try {
        if (this.#closed) throw new Error('the backend was closed');
        const limitMs = this.#options.replicaTimeoutMs + GRACE_MS;
        const [values, count] = await answerWithin(this.#query(queries), limitMs);
        for (const [index, { request, resolve }] of queries.entries()) {
          resolve(shows(values[index], request) ? count : 0);
        }
      } catch (error) {
        this.#drop();
        for (const { reject } of queries) reject(error);
      }
    }
    this.#running = false;
  }

  async #query(
    queries: readonly ReplicaQuery[],
  ): Promise<readonly [values: readonly unknown[], count: number]> {
    const { minReplicas, prefix, replicaTimeoutMs } = this.#options;
    const side = await (this.#side ??= this.#port.openSide());
    // WAIT counts from the last write of its own connection, and this one writes nothing. The message, which replicas get
    // too, moves that point behind every grant that was answered before.
    const [values, , count] = await Promise.all([
      Promise.all(queries.map((query) => side.send(commandOf(query)))),
      side.send(['PUBLISH', `${prefix}ch:replicas`, '']),
      side.send(['WAIT', String(minReplicas), String(replicaTimeoutMs)]),
    ]);
    return [values, Number(count)];
  }

  #drop(): void {
    this.#side?.then(
      (side) => side.close(),
      () => undefined,
    );
    this.#side = undefined;
  }
}

function commandOf({ keys, request }: ReplicaQuery): RedisCommand {
  return request.mode.kind === 'exclusive'
    ? ['GET', keys.lock]
    : ['HGET', holdersKey(keys), request.acquisitionId];
}

function shows(reply: unknown, { mode, acquisitionId }: AcquireRequest): boolean {
  if (mode.kind !== 'exclusive') return reply !== null && reply !== undefined;
  return typeof reply === 'string' && reply.startsWith(`${acquisitionId}|`);
}

/** The error of a grant that too few replicas have; the grant was released. */
export class ReplicationError extends Error {
  override readonly name = 'ReplicationError';
  readonly acknowledged: number;
  readonly wanted: number;

  constructor(acknowledged: number, wanted: number, timeoutMs: number) {
    super(
      `${acknowledged} of the wanted ${wanted} replicas had the lock within ${timeoutMs} ms: it was released. ` +
        'Check whether the replicas are connected, or lower minReplicas',
    );
    this.acknowledged = acknowledged;
    this.wanted = wanted;
  }
}
