import { createHash } from 'node:crypto';
import type { Call } from '@locks/core/backend';
import type pg from 'pg';
import type { Value } from './bind-message.ts';
import { NamedStatement } from './named-statement.ts';

/** A statement without an answer for so long has lost its connection, whatever TCP says. */
const ANSWER_MS = 5_000;

/** The caller's own timer comes first: it knows what to tell. */
const GRACE_MS = 100;

/** How often the answers that are waited for are looked after. */
const WATCH_MS = 50;

/** Values as the server writes them, whatever parsers the application has set on its pool. */
const texts: pg.CustomTypesConfig = { getTypeParser: () => (value: string) => value };

export type TextRow = readonly (string | null)[];

const none: readonly TextRow[] = [];

export interface Answer {
  readonly rows: readonly TextRow[];
  /** How many rows it gave or changed. */
  readonly count: number;
  /** On the caller's clock, when a connection was free and before the statement was sent. */
  readonly sentAt: number;
  /** Which process of the server answered, if no pooler is in between. */
  readonly processId: number | undefined;
}

/** What a statement needs to know of its caller's patience. */
export type Patience = Pick<Call, 'now' | 'deadline'>;

/** No connection came free, or could be made, while the caller waited. */
export class NoConnectionError extends Error {
  constructor() {
    super('no connection of the pool was free in time');
  }
}

/** A connection gave no answer in time. */
export class NoAnswerError extends Error {
  constructor() {
    super('the connection gave no answer in time');
  }
}

/** A statement that was sent and has no answer yet. */
interface Flight {
  readonly end: (error: Error) => void;
  /** On `performance.now()`. */
  readonly until: number;
}

/** Single statements on the connections of a pool. */
export class Statements {
  readonly pool: pg.Pool;
  /** Whether statements are prepared, once for each connection. Not where a pooler lends connections by transaction. */
  prepare = false;
  readonly #names = new Map<string, string>();
  readonly #flying = new Set<Flight>();
  #watcher: NodeJS.Timeout | undefined;

  constructor(pool: pg.Pool) {
    this.pool = pool;
  }

  /**
   * Runs one statement. A connection that gives no answer until the caller's deadline, or for 5 s, is closed.
   *
   * @param givenUp - asked when a connection is free: whether nobody wants the answer any more
   */
  run(text: string, values: unknown[], call: Patience, givenUp?: () => boolean): Promise<Answer> {
    const late = call.now() >= call.deadline;
    return new Promise((resolve, reject) => {
      this.pool.connect((failure, client, release) => {
        if (client === undefined) return reject(failure ?? new NoConnectionError());
        const sentAt = call.now();
        const left = late ? ANSWER_MS : call.deadline - sentAt;
        if (left <= 0 || (!late && givenUp?.())) {
          // After an outage, nobody waits for what piled up meanwhile.
          release();
          setTimeout(() => reject(new NoConnectionError()), GRACE_MS).unref();
          return;
        }
        const end = (error: Error | null | undefined, result?: Result): void => {
          if (!this.#flying.delete(flight)) return;
          client.removeListener('error', end);
          release(!error || isAnswer(error) ? undefined : error);
          if (!error) {
            const { rows = none, count = 0 } = result ?? {};
            return resolve({ rows, count, sentAt, processId: processIdOf(client) });
          }
          if (isStrangeStatement(error)) this.prepare = false;
          reject(error);
        };
        const flight: Flight = { end, until: performance.now() + Math.min(left + GRACE_MS, ANSWER_MS) };
        this.#flying.add(flight);
        this.#watch();
        client.once('error', end);
        if (this.prepare) sendPrepared(client, this.#nameOf(text), text, values, end);
        else send(client, { text, values }, end);
      });
    });
  }

  /** One timer for all statements, rather than one for each. */
  #watch(): void {
    this.#watcher ??= setInterval(() => {
      const now = performance.now();
      for (const { end, until } of this.#flying)
        if (until <= now) afterReading(() => end(new NoAnswerError()));
      if (this.#flying.size > 0) return;
      clearInterval(this.#watcher);
      this.#watcher = undefined;
    }, WATCH_MS).unref();
  }

  #nameOf(text: string): string {
    let name = this.#names.get(text);
    if (name === undefined) {
      name = `locks_${createHash('sha256').update(text).digest('hex').slice(0, 24)}`;
      this.#names.set(text, name);
    }
    return name;
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
      const answerMs = Math.max(1, Math.min(call.deadline - sentAt, this.#answerMs));
      const timer = setTimeout(() => afterReading(() => reject(new NoAnswerError())), answerMs);
      send(this.#client, { text, values }, (error, result) => {
        clearTimeout(timer);
        if (error) return reject(error);
        const { rows = none, count = 0 } = result ?? {};
        resolve({ rows, count, sentAt, processId: processIdOf(this.#client) });
      });
    });
  }
}

/**
 * The server's process at the other end, as it was told at the start of the session. Where a pooler is in between it is a
 * number of the pooler's, and not what `pg_backend_pid()` says.
 */
function processIdOf(client: pg.ClientBase): number | undefined {
  return (client as unknown as { readonly processID?: number }).processID;
}

interface Statement {
  readonly name?: string;
  readonly text: string;
  readonly values: unknown[];
}

type Result = Pick<Answer, 'rows' | 'count'>;
type Done = (error: Error | null | undefined, result?: Result) => void;

function send(client: pg.ClientBase, statement: Statement, done: Done): void {
  const query: pg.QueryArrayConfig = { ...statement, rowMode: 'array', types: texts };
  client.query(query, (error: Error | null, result?: pg.QueryArrayResult<(string | null)[]>) =>
    done(error, result && { rows: result.rows, count: result.rowCount ?? 0 }),
  );
}

function sendPrepared(
  client: pg.ClientBase,
  name: string,
  text: string,
  values: unknown[],
  done: Done,
): void {
  if (values.every(isPlain) && 'connection' in client)
    client.query(new NamedStatement(name, text, values, done));
  // Arrays are written by pg; its native client has no such connection.
  else send(client, { name, text, values }, done);
}

function isPlain(value: unknown): value is Value {
  return typeof value !== 'object' || value === null || value instanceof Uint8Array;
}

/** A prepared statement that another's session has, or that ours does not: there is a pooler in between after all. */
export function isStrangeStatement(error: unknown): boolean {
  const { code } = error as { code?: unknown };
  return code === '26000' || code === '42P05';
}

/** After a stalled event loop timers come first: what has arrived meanwhile is read before it counts as missing. */
function afterReading(then: () => void): void {
  setImmediate(then);
}

/** One that the server told and that leaves the connection as it was. */
function isAnswer(error: Error): boolean {
  return (error as { severity?: unknown }).severity === 'ERROR';
}
