import { ask } from '../driver/ask.ts';
import type { Answered, OwnConnection, Statement, TextRow } from '../driver/postgres-driver.ts';
import { ConnectionEnd } from '../driver/connection-end.ts';
import { asError } from '../driver/server-error.ts';
import { sqlText } from '../driver/sql-text.ts';

/** The most time for a connection to be made, in seconds. */
const CONNECT_S = 5;

/** A result, or an array of results for a message of several statements. */
interface BunResult extends Array<readonly unknown[]> {
  readonly count?: number;
}

/** A client of Bun, `new Bun.SQL(…)`, as far as the backend uses it. */
export interface BunSql {
  /** Its settings, with which the backend opens connections of its own. */
  readonly options: object;
  /** Makes a statement. */
  unsafe(text: string, values?: unknown[]): { values(): PromiseLike<unknown> };
  /** Closes a client of the backend; never yours. @throws the error of Bun */
  close(options?: { timeout?: number }): Promise<void>;
}

/** One connection of Bun: a client with a single connection, which is not used again after its end. It receives no messages. */
export class BunConnection implements OwnConnection {
  /** Bun does not tell it. */
  readonly processId = undefined;
  readonly #sql: BunSql;
  readonly #end = new ConnectionEnd();

  constructor(options: object, name: string) {
    const { connection } = options as { readonly connection?: object };
    const { Bun } = globalThis as unknown as {
      readonly Bun: { readonly SQL: new (options: object) => BunSql };
    };
    this.#sql = new Bun.SQL({
      ...options,
      connection: { application_name: name, ...connection },
      max: 1,
      idleTimeout: 0,
      maxLifetime: 0,
      connectionTimeout: CONNECT_S,
      onclose: () => this.#end.tell('the connection was closed'),
    });
  }

  async connect(): Promise<void> {
    await ask(this, { text: 'SELECT 1' });
  }

  send({ text, values = [] }: Statement, answered: Answered): void {
    // The client would connect again, in a new session.
    if (this.#end.isOver) {
      process.nextTick(answered, new Error('the connection was closed'));
      return;
    }
    const query = values.length === 0 ? this.#sql.unsafe(text) : this.#sql.unsafe(text, values.map(sqlText));
    (query.values() as PromiseLike<BunResult>).then(
      (result) => {
        const { count } = result;
        answered(
          undefined,
          count === undefined ? { rows: [], count: 0 } : { rows: result.map(textsOf), count },
        );
      },
      (error: unknown) => answered(asServerError(error)),
    );
  }

  onEnd(listener: (why: Error) => void): void {
    this.#end.add(listener);
  }

  onNotification(): void {
    // The backend on this driver polls.
  }

  setRef(): void {
    // An idle connection of Bun does not keep the process alive.
  }

  async end(): Promise<void> {
    await this.#sql.close().catch(() => undefined);
  }

  cut(): void {
    this.#end.tell('the connection was cut');
    this.#sql.close({ timeout: 0 }).catch(() => undefined);
  }
}

/** Bun reads columns as values; the backend asks for columns of these types only. */
function textsOf(row: readonly unknown[]): TextRow {
  return row.map((value) => {
    if (value === null) return null;
    if (typeof value === 'boolean') return value ? 't' : 'f';
    return String(value as string | number | bigint);
  });
}

/** An error with the SQL state as its `code`, as the drivers of Node give it. */
function asServerError(error: unknown): Error {
  const failure = asError(error);
  const { errno, severity } = failure as { errno?: unknown; severity?: unknown };
  if (typeof errno !== 'string') return failure;
  return Object.assign(new Error(failure.message, { cause: failure }), { code: errno, severity });
}
