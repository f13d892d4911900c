import type { RedisCommand } from '@locks/redis-protocol';
import type { CheckedConnection } from './connection.ts';

/** The time for one request, in milliseconds: core has its own deadlines, and a request without an answer shall end. */
const REQUEST_MS = 10_000;
const COMMANDS_PER_REQUEST = 100;

/** A request that got no answer of the store: it may be repeated. */
class RestRequestError extends Error {
  override readonly name = 'RestRequestError';
}

interface Queued {
  readonly command: RedisCommand;
  readonly resolve: (reply: unknown) => void;
  readonly reject: (error: unknown) => void;
}

interface Answer {
  readonly result?: unknown;
  readonly error?: string;
}

/** Sends commands by the REST API: those of one turn of the event loop in one request. Nothing is sent twice. */
export class RestClient {
  readonly #connection: CheckedConnection;
  #queued: Queued[] = [];

  constructor(connection: CheckedConnection) {
    this.#connection = connection;
  }

  send(command: RedisCommand): Promise<unknown> {
    return new Promise((resolve, reject) => {
      this.#queued.push({ command, resolve, reject });
      if (this.#queued.length === 1) queueMicrotask(() => this.#flush());
    });
  }

  #flush(): void {
    const all = this.#queued;
    this.#queued = [];
    for (let at = 0; at < all.length; at += COMMANDS_PER_REQUEST) {
      void this.#request(all.slice(at, at + COMMANDS_PER_REQUEST));
    }
  }

  async #request(queued: readonly Queued[]): Promise<void> {
    try {
      const commands = queued.map(({ command }) => command);
      const [only] = commands;
      const isSingle = commands.length === 1;
      const answer = await this.#post(isSingle ? '' : '/pipeline', isSingle ? only : commands);
      const answers = (isSingle ? [answer] : answer) as readonly Answer[];
      for (const [at, { resolve, reject }] of queued.entries()) {
        const { result, error } = answers[at] ?? { error: 'the reply is too short' };
        if (error === undefined) resolve(result);
        else reject(new Error(error));
      }
    } catch (error) {
      for (const { reject } of queued) reject(error);
    }
  }

  async #post(path: string, body: unknown): Promise<unknown> {
    const { fetch, token, url } = this.#connection;
    let response: Response;
    let answer: unknown;
    try {
      response = await fetch(url + path, {
        method: 'POST',
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        body: JSON.stringify(body),
        signal: AbortSignal.timeout(REQUEST_MS),
      });
      answer = await response.json();
    } catch (error) {
      throw new RestRequestError(`no answer from ${new URL(url).host}: ${reasonOf(error)}`, { cause: error });
    }
    const { status } = response;
    const { error } = answer as Answer;
    if (status === 401) throw new Error(`WRONGPASS the token was refused: ${error ?? ''}`);
    if (status === 429 || status >= 500) {
      throw new RestRequestError(`${new URL(url).host} answered ${status}: ${error ?? ''}`);
    }
    return answer;
  }
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? `${error.message}: ${error.cause.message}` : error.message;
}
