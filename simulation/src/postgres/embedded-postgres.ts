import { Buffer } from 'node:buffer';
import { PGlite } from '@electric-sql/pglite';
import { type Answer, messages, type Notification, type Outcome, readAnswer } from './wire-format.ts';

/** A parameter in the notation of the server. */
export type SqlValue = string | null;

/** What the functions of time and of sessions give in a statement. */
export interface Surroundings {
  /** The time of the statement, and that at which its transaction began. */
  readonly now: string;
  readonly transactionStart: string;
  readonly pid: number;
}

/** Everything that the tables of the adapter hold, to go back to. */
export type TableTexts = readonly SqlValue[];

/** The channel by which the replaced functions tell of locks. */
const LOCKED = 'simulated_lock';
const REPLACED = [
  [
    'clock_timestamp()',
    'timestamptz',
    `SELECT pg_catalog.current_setting('simulated.now')::pg_catalog.timestamptz`,
  ],
  [
    'statement_timestamp()',
    'timestamptz',
    `SELECT pg_catalog.current_setting('simulated.now')::pg_catalog.timestamptz`,
  ],
  [
    'transaction_timestamp()',
    'timestamptz',
    `SELECT pg_catalog.current_setting('simulated.transaction_start')::pg_catalog.timestamptz`,
  ],
  [
    'pg_postmaster_start_time()',
    'timestamptz',
    `SELECT pg_catalog.current_setting('simulated.server_start')::pg_catalog.timestamptz`,
  ],
  ['pg_backend_pid()', 'integer', `SELECT pg_catalog.current_setting('simulated.pid')::integer`],
  ['pg_advisory_lock(bigint)', 'void', `SELECT pg_catalog.pg_notify('${LOCKED}', $1::pg_catalog.text)`],
  [
    'pg_try_advisory_lock_shared(bigint)',
    'boolean',
    `SELECT $1::pg_catalog.text OPERATOR(pg_catalog.<>) ALL (pg_catalog.string_to_array(pg_catalog.current_setting('simulated.keys'), ','))`,
  ],
  ['pg_advisory_unlock_shared(bigint)', 'boolean', 'SELECT true'],
] as const;
const TABLES = ['locks', 'shares', 'waiters', 'clients'] as const;
const SCHEMA = 'locks';
/** The settings of sessions that the one session of PGlite takes over from each. */
export const USUAL: Readonly<Record<string, string>> = {
  default_transaction_read_only: 'off',
  search_path: '"$user", public',
};
const APPLICATION = 'CREATE SCHEMA application; CREATE TABLE application.work (done integer)';
const READ = `SELECT ${TABLES.map((table) => `(SELECT pg_catalog.json_agg(one) FROM ${SCHEMA}.${table} one)`).join(', ')},
  (SELECT pg_catalog.json_object_agg(client, listener::text) FROM ${SCHEMA}.clients)`;

/**
 * PGlite, once for a program, with the functions of time and of sessions replaced in `pg_catalog`. So the text of the adapter's SQL is
 * sent, and stored, as it is. All is synchronous.
 */
export class EmbeddedPostgres {
  static #loaded: Promise<EmbeddedPostgres> | undefined;
  readonly #db: PGlite;
  /** The statements that are prepared, by their text. */
  #prepared = new Map<string, string>();
  #names = 0;
  readonly #settings = new Map<string, string>();
  #schema: readonly string[] = [];

  private constructor(db: PGlite) {
    this.#db = db;
  }

  static load(): Promise<EmbeddedPostgres> {
    return (this.#loaded ??= PGlite.create().then((db) => new EmbeddedPostgres(db).#replaceFunctions()));
  }

  #replaceFunctions(): this {
    for (const [signature, type, body] of REPLACED) {
      const [name] = signature.split('(');
      this.#run(`ALTER FUNCTION pg_catalog.${signature} RENAME TO real_${name}`);
      this.#run(
        `CREATE FUNCTION pg_catalog.${signature} RETURNS ${type} LANGUAGE sql VOLATILE AS $$ ${body} $$`,
      );
    }
    // The tables have a time when they are made.
    this.#run("SET simulated.now = '2026-01-01'");
    this.#run(APPLICATION);
    return this;
  }

  /** Empties the tables, and makes them if they are those of other sources. */
  reset(schema: readonly string[]): void {
    for (const [name, value] of Object.entries(USUAL)) this.set(name, value);
    // Nobody listens any more, but for the locks.
    this.#run('UNLISTEN *');
    this.#run(`LISTEN ${LOCKED}`);
    if (schema !== this.#schema) {
      this.#run('DEALLOCATE ALL');
      this.#prepared = new Map();
      this.#run(`DROP SCHEMA IF EXISTS ${SCHEMA} CASCADE`);
      for (const text of schema) this.#run(text);
      this.#schema = schema;
    }
    for (const table of TABLES) this.#ask(`DELETE FROM ${SCHEMA}.${table}`);
    this.#ask('DELETE FROM application.work');
    this.#ask(`SELECT pg_catalog.setval('${SCHEMA}.numbers', 1, false)`);
  }

  /** Sets a parameter of the one session, unless it has the value. */
  set(name: string, value: string): void {
    if (this.#settings.get(name) === value) return;
    this.#ask('SELECT pg_catalog.set_config($1, $2, false)', [name, value]);
    this.#settings.set(name, value);
  }

  /** Runs one statement, in a transaction of its own unless one is open. */
  execute(text: string, values: readonly SqlValue[], { now, transactionStart, pid }: Surroundings): Answer {
    return this.#send([
      [
        `SELECT pg_catalog.set_config('simulated.now', $1, false), pg_catalog.set_config('simulated.transaction_start', $2, false),
  pg_catalog.set_config('simulated.pid', $3, false)`,
        [now, transactionStart, String(pid)],
      ],
      [text, values],
    ]);
  }

  /** Begins or ends a transaction of the one session. */
  control(command: 'BEGIN' | 'ROLLBACK' | 'COMMIT'): Answer {
    const answer = readAnswer(this.#db.execProtocolRawSync(messages.query(command)));
    if (answer.error !== undefined) throw answer.error;
    return answer;
  }

  /** What the tables hold, and the keys of the listeners by client. */
  read(): TableTexts {
    return this.#ask(READ).rows[0] ?? [];
  }

  /** Goes back to what the tables held. The numbers of tokens go on. */
  write(texts: TableTexts): void {
    for (const [at, table] of TABLES.entries()) {
      this.#ask(`DELETE FROM ${SCHEMA}.${table}`);
      const text = texts[at] ?? null;
      if (text !== null)
        this.#ask(
          `INSERT INTO ${SCHEMA}.${table} SELECT * FROM pg_catalog.json_populate_recordset(null::${SCHEMA}.${table}, $1::json)`,
          [text],
        );
    }
  }

  /** The number that was drawn last. */
  get number(): string {
    const [[last, isDrawn] = []] = this.#ask(`SELECT last_value, is_called FROM ${SCHEMA}.numbers`).rows;
    return isDrawn === 't' ? String(last) : '0';
  }

  set number(last: string) {
    const isNone = last === '0';
    this.#ask(`SELECT pg_catalog.setval('${SCHEMA}.numbers', $1, $2)`, [
      isNone ? '1' : last,
      String(!isNone),
    ]);
  }

  #ask(text: string, values: readonly SqlValue[] = []): Outcome {
    const { outcomes, error } = this.#send([[text, values]]);
    if (error !== undefined) throw error;
    return outcomes[0] ?? { rows: [], tag: '' };
  }

  #run(text: string): void {
    const { error } = readAnswer(this.#db.execProtocolRawSync(messages.query(text)));
    if (error !== undefined) throw error;
  }

  /** Sends statements, which are one transaction. */
  #send(statements: readonly (readonly [text: string, values: readonly SqlValue[]])[]): Answer {
    const fresh: string[] = [];
    const sent = statements.flatMap(([text, values]) => {
      const known = this.#prepared.get(text);
      const name = known ?? `s${(this.#names += 1)}`;
      this.#prepared.set(text, name);
      if (known === undefined) fresh.push(text);
      return [
        ...(known === undefined ? [messages.parse(name, text)] : []),
        messages.bind(name, values),
        messages.execute,
      ];
    });
    const answer = readAnswer(this.#db.execProtocolRawSync(Buffer.concat([...sent, messages.sync])));
    // Behind an error nothing is prepared.
    if (answer.error !== undefined) for (const text of fresh) this.#prepared.delete(text);
    return answer;
  }
}

/** The keys of advisory locks that a statement has taken, and the notifications for others. */
export function sortNotifications(all: readonly Notification[]): {
  readonly keys: readonly string[];
  readonly others: readonly Notification[];
} {
  return {
    keys: all.filter(({ channel }) => channel === LOCKED).map(({ payload }) => payload),
    others: all.filter(({ channel }) => channel !== LOCKED),
  };
}
