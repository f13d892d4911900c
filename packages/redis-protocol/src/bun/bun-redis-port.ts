import { mustBe } from '@locks/core/backend';
import type { NodeSender, RedisCommand, RedisPort, SideConnection, SubscriptionEvents } from '../port.ts';

/** A client of Bun, `new Bun.RedisClient(…)` or `Bun.redis`, as far as the backend uses it. */
export interface BunRedisClient {
  /** Makes a client with the same settings. The backend uses such clients only. @throws the error of Bun */
  duplicate(): Promise<BunRedisClient>;
  /** Sends a command. @throws the error of Bun */
  send(command: string, args: string[]): Promise<unknown>;
  /** Listens to a channel. @throws the error of Bun */
  subscribe(channel: string, listener: (text: string) => void): Promise<unknown>;
  /** Closes the client; never yours. */
  close(): void;
  /** Called when a client of the backend is connected, also again; yours is left alone. */
  onconnect: ((error?: Error) => void) | null;
  /** Called when a client of the backend has given up; yours is left alone. */
  onclose: ((error?: Error) => void) | null;
}

/** The longest pause before a subscriber is opened again. */
const MAX_PAUSE_MS = 2_000;

/** The port of Bun's client. It sends over clients of its own: only of those it may watch the connection. */
export class BunRedisPort implements RedisPort {
  readonly name = 'redis-bun';
  readonly cluster = false;
  readonly isPolled = false;
  readonly repeatsRefused = false;
  readonly keyPrefix = '';
  reconnects = 0;
  readonly #client: BunRedisClient;
  readonly #opened = new Set<() => void>();
  #own: Promise<BunRedisClient> | undefined;
  #lastError: unknown;

  constructor(client: BunRedisClient) {
    this.#client = client;
  }

  async send(_key: string, [name, ...args]: RedisCommand): Promise<unknown> {
    this.#own ??= this.#open();
    const own = this.#own;
    try {
      const answer = await (await own).send(name, args);
      this.#lastError = undefined;
      return answer;
    } catch (error) {
      if (isConnectionError(error)) this.#discard(own, error);
      throw error;
    }
  }

  connectionError(): unknown {
    return this.#lastError;
  }

  masters(): readonly NodeSender[] {
    return [(command) => this.send('', command)];
  }

  async subscribe(channel: string, { message, restored }: SubscriptionEvents): Promise<void> {
    let current: BunRedisClient | undefined;
    let isClosed = false;
    let pauseMs = 0;
    const close = (): void => {
      isClosed = true;
      current?.close();
    };
    const listen = async (): Promise<void> => {
      const own = await this.#client.duplicate();
      current = own;
      if (isClosed) return own.close();
      // Bun forgets the channel when it connects again: a client that was lost is replaced.
      const replace = (): void => {
        if (own !== current || isClosed) return;
        current = undefined;
        own.onconnect = own.onclose = null;
        own.close();
        again();
      };
      own.onclose = replace;
      await own.subscribe(channel, message);
      own.onconnect = replace;
      pauseMs = 0;
    };
    const again = (): void => {
      pauseMs = Math.min(MAX_PAUSE_MS, 50 + 2 * pauseMs);
      setTimeout(() => {
        if (!isClosed) listen().then(restored, again);
      }, pauseMs);
    };
    this.#opened.add(close);
    try {
      await listen();
    } catch (error) {
      this.#opened.delete(close);
      close();
      throw error;
    }
  }

  async openSide(): Promise<SideConnection> {
    const side = await this.#client.duplicate();
    const close = (): void => {
      this.#opened.delete(close);
      side.close();
    };
    this.#opened.add(close);
    return { send: ([name, ...args]) => side.send(name, args), close };
  }

  close(): Promise<void> {
    for (const close of this.#opened) close();
    this.#opened.clear();
    this.#own?.then((own) => own.close()).catch(() => undefined);
    return Promise.resolve();
  }

  async #open(): Promise<BunRedisClient> {
    const own = await this.#client.duplicate();
    let wasConnected = false;
    own.onconnect = () => {
      if (wasConnected) this.reconnects += 1;
      wasConnected = true;
    };
    return own;
  }

  /** Gives up a connection that was lost: after some tries Bun's client connects no more. */
  #discard(own: Promise<BunRedisClient>, error: unknown): void {
    this.#lastError = error;
    if (this.#own !== own) return;
    this.#own = undefined;
    this.reconnects += 1;
    own.then((client) => client.close()).catch(() => undefined);
  }
}

/** Refuses what is no client of Bun. */
export function checkBunClient(client: unknown): asserts client is BunRedisClient {
  const { duplicate, send, subscribe, bufferedAmount } = (client ?? {}) as Partial<BunRedisClient> & {
    readonly bufferedAmount?: unknown;
  };
  const isClient = [duplicate, send, subscribe].every((method) => typeof method === 'function');
  if (isClient && typeof bufferedAmount === 'number') return;
  throw mustBe(
    'the client',
    "a client of Bun, as new Bun.RedisClient('redis://…') gives, or Bun.redis",
    client,
  );
}

function isConnectionError(error: unknown): boolean {
  const { code } = (error ?? {}) as { readonly code?: unknown };
  return typeof code === 'string' && code.startsWith('ERR_REDIS_CONNECTION');
}
