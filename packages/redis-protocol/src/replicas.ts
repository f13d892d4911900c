import type { AcquireRequest } from '@locks/core/backend';
import type { Settings } from './options.ts';
import { holdersKey, type ResourceKeys } from './keys.ts';
import type { RedisCommand, RedisPort, SideConnection } from './port.ts';

interface Question {
  readonly keys: ResourceKeys;
  readonly request: AcquireRequest;
  readonly resolve: (acknowledged: number) => void;
  readonly reject: (error: unknown) => void;
}

/** How much longer than its own time limit a `WAIT` may take before its connection counts as broken. */
const graceMs = 1000;

/**
 * Asks how many replicas have a grant, on a connection of its own: `WAIT` blocks the connection that sends it.
 * Grants that come while one question is under way share the next one.
 */
export class Replicas {
  readonly #port: RedisPort;
  readonly #settings: Settings;
  #side: Promise<SideConnection> | undefined;
  #questions: Question[] = [];
  #asking = false;
  #closed = false;

  constructor(port: RedisPort, settings: Settings) {
    this.#port = port;
    this.#settings = settings;
  }

  /** The number of replicas that have this hold; 0 too when the server of the side connection does not have it itself. */
  acknowledged(keys: ResourceKeys, request: AcquireRequest): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#questions.push({ keys, request, resolve, reject });
      if (!this.#asking) void this.#ask();
    });
  }

  /** Before the port closes: what is not asked by then is refused, and opens no connection. */
  close(): void {
    this.#closed = true;
  }

  async #ask(): Promise<void> {
    this.#asking = true;
    while (this.#questions.length > 0) {
      const questions = this.#questions;
      this.#questions = [];
      try {
        const [values, count] = await this.#once(questions);
        for (const [index, { request, resolve }] of questions.entries()) {
          resolve(shows(values[index], request) ? count : 0);
        }
      } catch (error) {
        this.#drop();
        for (const { reject } of questions) reject(error);
      }
    }
    this.#asking = false;
  }

  async #once(questions: readonly Question[]): Promise<[readonly unknown[], number]> {
    if (this.#closed) throw new Error('the backend was closed');
    const { minReplicas, prefix, replicaTimeoutMs } = this.#settings;
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      const limit = replicaTimeoutMs + graceMs;
      timer = setTimeout(() => reject(new Error(`no answer to WAIT within ${limit} ms`)), limit);
    });
    try {
      const side = await Promise.race([(this.#side ??= this.#port.openSide()), late]);
      // WAIT counts from the sending connection's own last write, and this connection has none: the message, which
      // replicas get as well, moves it behind every grant that was answered before.
      const replies = Promise.all([
        Promise.all(questions.map((question) => side.send(lookUp(question)))),
        side.send(['PUBLISH', `${prefix}ch:replicas`, '']),
        side.send(['WAIT', String(minReplicas), String(replicaTimeoutMs)]),
      ]);
      const [values, , count] = await Promise.race([replies, late]);
      return [values, Number(count)];
    } finally {
      clearTimeout(timer);
    }
  }

  #drop(): void {
    this.#side?.then(
      (side) => side.close(),
      () => undefined,
    );
    this.#side = undefined;
  }
}

function lookUp({ keys, request }: Question): RedisCommand {
  return request.mode.kind === 'exclusive'
    ? ['GET', keys.lock]
    : ['HGET', holdersKey(keys), request.acquisitionId];
}

function shows(reply: unknown, { mode, acquisitionId }: AcquireRequest): boolean {
  if (mode.kind !== 'exclusive') return reply !== null && reply !== undefined;
  return typeof reply === 'string' && reply.startsWith(`${acquisitionId}|`);
}

/** Too few replicas have the grant; it was given back. */
export class ReplicationError extends Error {
  override readonly name = 'ReplicationError';
  readonly acknowledged: number;
  readonly wanted: number;

  constructor(acknowledged: number, wanted: number, timeoutMs: number) {
    super(
      `${acknowledged} of the wanted ${wanted} replicas had the lock within ${timeoutMs} ms: it was given back. ` +
        'See whether the replicas are connected, or lower minReplicas',
    );
    this.acknowledged = acknowledged;
    this.wanted = wanted;
  }
}
