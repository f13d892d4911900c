import type { RedisCommand } from '@locks/redis-protocol';
import { SimulatedRedisError } from './reply.ts';
import type { ClientReply } from './simulated-redis.ts';

/** What a server carries out on a connection that only listens. */
const OF_SUBSCRIBERS = ['SUBSCRIBE', 'UNSUBSCRIBE', 'RESET'];

/**
 * One connection of a client that an application shares with the locks, as the server sees it: an open `MULTI`, the mode of a subscriber and
 * the database are states of the connection, whoever has sent the command that led there.
 */
export class SharedConnection {
  /** What `EXEC` carries out; `undefined`: no `MULTI` is open. */
  #queued: { readonly what: () => string; readonly run: () => ClientReply }[] | undefined;
  #isRefused = false;
  readonly #listensTo = new Set<string>();
  #database = 0;
  readonly #executesLate: (what: string) => void;

  /** @param executesLate - called for each command that an `EXEC` carries out */
  constructor(executesLate: (what: string) => void) {
    this.#executesLate = executesLate;
  }

  get database(): number {
    return this.#database;
  }

  /** Whether a command of anybody does here what it does on a fresh connection. */
  get isPlain(): boolean {
    return this.#queued === undefined && this.#listensTo.size === 0 && this.#database === 0;
  }

  /**
   * Executes a command, or queues it.
   *
   * @param check - throws what the server says to a command that it does not know
   * @param run - executes a command that is none of the connection
   */
  execute(command: RedisCommand, what: () => string, check: () => void, run: () => ClientReply): ClientReply {
    const name = command[0].toUpperCase();
    if (this.#listensTo.size > 0 && !OF_SUBSCRIBERS.includes(name))
      throw new SimulatedRedisError(
        `ERR Can't execute '${name.toLowerCase()}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context`,
      );
    switch (name) {
      case 'RESET':
        this.#queued = undefined;
        this.#listensTo.clear();
        this.#database = 0;
        return 'RESET';
      case 'MULTI':
        if (this.#queued !== undefined) throw new SimulatedRedisError('ERR MULTI calls can not be nested');
        this.#queued = [];
        this.#isRefused = false;
        return 'OK';
      case 'EXEC':
        return this.#executeQueued();
      case 'DISCARD':
        this.#take('DISCARD');
        return 'OK';
      default:
        return this.#executeOrQueue(what, check, this.#own(name, command) ?? run);
    }
  }

  #executeOrQueue(what: () => string, check: () => void, run: () => ClientReply): ClientReply {
    if (this.#queued === undefined) return run();
    try {
      check();
    } catch (error) {
      this.#isRefused = true;
      throw error;
    }
    this.#queued.push({ what, run });
    return 'QUEUED';
  }

  /** A command that changes the connection. */
  #own(name: string, [, first = '']: RedisCommand): (() => ClientReply) | undefined {
    switch (name) {
      case 'SELECT':
        return () => {
          this.#database = Number(first);
          return 'OK';
        };
      case 'SUBSCRIBE':
        return () => ['subscribe', first, this.#listensTo.add(first).size];
      case 'UNSUBSCRIBE':
        return () => {
          this.#listensTo.delete(first);
          return ['unsubscribe', first, this.#listensTo.size];
        };
      default:
        return undefined;
    }
  }

  #executeQueued(): ClientReply {
    const queued = this.#take('EXEC');
    if (this.#isRefused)
      throw new SimulatedRedisError('EXECABORT Transaction discarded because of previous errors.');
    return queued.map(({ what, run }): ClientReply => {
      this.#executesLate(what());
      try {
        return run();
      } catch (error) {
        if (error instanceof SimulatedRedisError) return error;
        throw error;
      }
    });
  }

  #take(by: string): { readonly what: () => string; readonly run: () => ClientReply }[] {
    const queued = this.#queued;
    if (queued === undefined) throw new SimulatedRedisError(`ERR ${by} without MULTI`);
    this.#queued = undefined;
    return queued;
  }
}
