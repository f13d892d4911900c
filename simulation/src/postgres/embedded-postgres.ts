import { Buffer } from 'node:buffer';
import { PGlite } from '@electric-sql/pglite';
import { type Answer, ClientMessages, type Notification, type Outcome, readAnswer } from './wire-format.ts';

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
const SETTINGS = [
  // It would tell of a start that takes long, by a timer that keeps the program for ten seconds.
  'log_startup_progress_interval=0',
  // Planned with its parameters each time, the heartbeat of a client with its arrays takes three times as long.
  'plan_cache_mode=force_generic_plan',
  // Nobody reads statistics, and nothing outlives the program.
  'track_activities=off',
  'track_counts=off',
  'compute_query_id=off',
  'full_page_writes=off',
  'synchronous_commit=off',
];
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
/** Behind a statement, in its transaction, which has a number if it has written anything: a row only then. */
const READ_WRITTEN = `${READ} WHERE pg_catalog.pg_current_xact_id_if_assigned() IS NOT NULL`;

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
  readonly #messages = new ClientMessages();
  #schema: readonly string[] = [];

  private constructor(db: PGlite) {
    this.#db = db;
  }

  static load(): Promise<EmbeddedPostgres> {
    const startParams = [...PGlite.defaultStartParams, ...SETTINGS.flatMap((setting) => ['-c', setting])];
    return (this.#loaded ??= PGlite.create({ startParams }).then((db) =>
      new EmbeddedPostgres(db).#replaceFunctions(),
    ));
  }

  #replaceFunctions(): this {
    for (const [signature, type, body] of REPLACED) {
      const [name] = signature.split('(');
      this.#run(`ALTER FUNCTION pg_catalog.${signature} RENAME TO real_${name}`);
      this.#run(
        `CREATE FUNCTION pg_catalog.${signature} RETURNS ${type} LANGUAGE sql VOLATILE AS $$ ${body} $$`,
      );
    }
    // A listener looks for one setting among all, which takes as long as ten statements.
    this.#run('ALTER VIEW pg_catalog.pg_settings RENAME TO real_pg_settings');
    this.#run(`CREATE VIEW pg_catalog.pg_settings AS SELECT 'idle_session_timeout'::text AS name`);
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

  /** Runs one statement in the transaction that is open. */
  execute(text: string, values: readonly SqlValue[], surroundings: Surroundings): Answer {
    return this.#send([surroundedBy(surroundings), [text, values]]);
  }

  /** Runs one statement in a transaction of its own, and reads the tables if it may have changed them. */
  executeAlone(
    text: string,
    values: readonly SqlValue[],
    surroundings: Surroundings,
  ): Answer & { readonly tables?: TableTexts | undefined } {
    const { outcomes, ...answer } = this.#send([
      surroundedBy(surroundings),
      [text, values],
      [READ_WRITTEN, []],
    ]);
    return { ...answer, outcomes: outcomes.slice(0, 2), tables: outcomes[2]?.rows[0] };
  }

  /** Begins or ends a transaction of the one session. */
  control(command: 'BEGIN' | 'ROLLBACK' | 'COMMIT'): Answer {
    this.#messages.query(command);
    const answer = this.#exchange();
    if (answer.error !== undefined) throw answer.error;
    return answer;
  }

  /** What the tables hold, and the keys of the listeners by client. */
  read(): TableTexts {
    return this.#ask(READ).rows[0] ?? [];
  }

  /** Goes back to what the tables held. The numbers of tokens go on. */
  write(texts: TableTexts): void {
    // The statement before may have been of a session that may only read.
    this.set('default_transaction_read_only', 'off');
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
    this.#messages.query(text);
    const { error } = this.#exchange();
    if (error !== undefined) throw error;
  }

  /** Sends statements, which are one transaction. */
  #send(statements: readonly (readonly [text: string, values: readonly SqlValue[]])[]): Answer {
    const fresh: string[] = [];
    for (const [text, values] of statements) {
      let name = this.#prepared.get(text);
      if (name === undefined) {
        // Each channel has a name of its own, and is listened to once.
        name = text.startsWith('LISTEN ') ? '' : `s${(this.#names += 1)}`;
        this.#messages.parse(name, text);
        if (name !== '') {
          this.#prepared.set(text, name);
          fresh.push(text);
        }
      }
      this.#messages.bind(name, values).execute();
    }
    this.#messages.sync();
    const answer = this.#exchange();
    // Behind an error nothing is prepared.
    if (answer.error !== undefined) for (const text of fresh) this.#prepared.delete(text);
    return answer;
  }

  /** Sends what was written. All of it is answered before the call returns. */
  #exchange(): Answer {
    const parts: Uint8Array[] = [];
    // Given to nobody, the answers would be read by PGlite too, which takes longer than many a statement.
    void this.#db.execProtocolRawStream(this.#messages.take(), {
      syncToFs: false,
      onRawData: (part) => void parts.push(part.slice()),
    });
    const [first, ...others] = parts;
    if (first === undefined) throw new Error('PGlite did not answer');
    return readAnswer(others.length === 0 ? first : Buffer.concat(parts));
  }
}

function surroundedBy({
  now,
  transactionStart,
  pid,
}: Surroundings): readonly [text: string, values: readonly SqlValue[]] {
  const text = `SELECT pg_catalog.set_config('simulated.now', $1, false), pg_catalog.set_config('simulated.transaction_start', $2, false),
  pg_catalog.set_config('simulated.pid', $3, false)`;
  return [text, [now, transactionStart, String(pid)]];
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
