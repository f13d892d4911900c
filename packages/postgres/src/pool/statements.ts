import type { Call } from '@locks/core/backend';
import type pg from 'pg';

/** A statement without an answer for so long has lost its connection, whatever TCP says. */
const ANSWER_MS = 5_000;

/** Values as the server writes them, whatever parsers the application has set on its pool. */
const texts: pg.CustomTypesConfig = { getTypeParser: () => (value: string) => value };

export type TextRow = readonly (string | null)[];

export interface Answer {
  readonly rows: readonly TextRow[];
  /** On the caller's clock, when a connection was free and before the statement was sent. */
  readonly sentAt: number;
}

/** What a statement needs to know of its caller's patience. */
export type Patience = Pick<Call, 'now' | 'deadline'>;

/** No connection came free, or could be made, while the caller waited. */
export class NoConnectionError extends Error {
  constructor() {
    super('no connection of the pool was free in time');
  }
}

/** Single statements on the connections of a pool. */
export class Statements {
  readonly pool: pg.Pool;

  constructor(pool: pg.Pool) {
    this.pool = pool;
  }

  /**
   * Runs one statement, unnamed, so that it may go through a transaction pooler. A connection that gives no answer until
   * the caller's deadline, or for 5 s, is closed.
   */
  run(text: string, values: unknown[], call: Patience): Promise<Answer> {
    return new Promise((resolve, reject) => {
      this.pool.connect((failure, client, release) => {
        if (client === undefined) return reject(failure ?? new NoConnectionError());
        const sentAt = call.now();
        const left = call.deadline - sentAt;
        if (left <= 0) {
          // After an outage, nobody waits for what piled up meanwhile.
          release();
          return reject(new NoConnectionError());
        }
        let settled = false;
        const settle = (error: Error | undefined): boolean => {
          if (settled) return false;
          settled = true;
          client.removeListener('error', broken);
          release(isAnswer(error) ? undefined : error);
          return true;
        };
        const broken = (error: Error): void => {
          if (settle(error)) reject(error);
        };
        client.once('error', broken);
        send(client, text, values, Math.min(left, ANSWER_MS), (error, rows) => {
          if (!settle(error)) return;
          if (error) reject(error);
          else resolve({ rows, sentAt });
        });
      });
    });
  }
}

/** Single statements on one connection that is not of a pool, one after the other. */
export class ConnectionStatements {
  readonly #client: pg.Client;
  readonly #answerMs: number;
  #last: Promise<unknown> = Promise.resolve();

  constructor(client: pg.Client, answerMs: number) {
    this.#client = client;
    this.#answerMs = answerMs;
  }

  run(text: string, values: unknown[], call: Patience): Promise<Answer> {
    const answer = this.#last.then(() => this.#send(text, values, call));
    this.#last = answer.catch(() => undefined);
    return answer;
  }

  #send(text: string, values: unknown[], call: Patience): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const sentAt = call.now();
      send(this.#client, text, values, Math.min(call.deadline - sentAt, this.#answerMs), (error, rows) => {
        if (error) reject(error);
        else resolve({ rows, sentAt });
      });
    });
  }
}

function send(
  client: pg.ClientBase,
  text: string,
  values: unknown[],
  answerMs: number,
  done: (error: Error | undefined, rows: readonly TextRow[]) => void,
): void {
  const query: pg.QueryArrayConfig & { query_timeout: number } = {
    text,
    values,
    rowMode: 'array',
    types: texts,
    query_timeout: Math.max(1, Math.ceil(answerMs)),
  };
  client.query(query, (error: Error | null, result: pg.QueryArrayResult<(string | null)[]> | undefined) => {
    done(error ?? undefined, result?.rows ?? []);
  });
}

/** No error, or one that the server told and that leaves the connection as it was. */
function isAnswer(error: Error | undefined): boolean {
  return error === undefined || (error as { severity?: unknown }).severity === 'ERROR';
}
