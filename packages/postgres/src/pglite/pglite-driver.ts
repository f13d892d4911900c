import type { PGliteInterface, QueryOptions, Results, Transaction } from '@electric-sql/pglite';
import { type ConnectionPool, readClient } from '@locks/core/backend';
import type {
  Answered,
  PooledConnection,
  PostgresDriver,
  Statement,
  TextRow,
} from '../driver/postgres-driver.ts';
import { queryOutside } from '../driver/pglite-outside.ts';
import { asError } from '../driver/server-error.ts';
import { sqlText } from '../driver/sql-text.ts';

/** Values are sent and read as texts, whatever types the application has set. */
const asText = new Proxy({}, { get: () => (value: string) => value });
const TEXTS: QueryOptions = { rowMode: 'array', parsers: asText, serializers: asText };

/** PGlite: a database in this process, with one session for everybody. */
export class PgliteDriver implements PostgresDriver {
  readonly pool: ConnectionPool<PooledConnection>;
  readonly #db: PGliteInterface;

  constructor(db: PGliteInterface) {
    this.#db = db;
    this.pool = {
      // The database itself lets one statement go after the other.
      limit: 1,
      connect: (lend) => process.nextTick(lend, undefined, new PgliteSession(db)),
      release: (connection) => connection.release(undefined),
    };
  }

  isClientClosed(): boolean {
    return this.#db.closed;
  }

  async close(): Promise<void> {
    // The database is the application's.
  }
}

/**
 * The session of the database. Whoever begins a transaction has it alone until the end: statements of the application wait
 * meanwhile, instead of becoming part of the transaction.
 */
class PgliteSession implements PooledConnection {
  readonly processId = undefined;
  /** Statements are sent outside of the application's transactions. */
  readonly isInTransaction = false;
  readonly #db: PGliteInterface;
  #transaction: { readonly tx: Transaction; readonly end: (commit: boolean) => Promise<void> } | undefined;

  constructor(db: PGliteInterface) {
    this.#db = db;
  }

  send(statement: Statement, answered: Answered): void {
    this.#run(statement).then(
      ({ rows }) => answered(undefined, { rows, count: rows.length }),
      (error: unknown) => answered(asError(error)),
    );
  }

  release(): void {
    void this.#transaction?.end(false);
  }

  async #run({ text, values = [] }: Statement): Promise<Results<TextRow>> {
    if (/^BEGIN\b/.test(text)) return await this.#begin();
    if (/^(?:COMMIT|ROLLBACK)$/.test(text)) {
      await this.#transaction?.end(text === 'COMMIT');
      return NOTHING;
    }
    const session = this.#transaction?.tx;
    if (session === undefined) {
      const { rows } = await queryOutside(this.#db, text, values);
      return { ...NOTHING, rows: [...rows] };
    }
    if (values.length > 0) return await session.query<TextRow>(text, values.map(sqlText), TEXTS);
    const [first = NOTHING] = await session.exec(text, TEXTS);
    return first as unknown as Results<TextRow>;
  }

  #begin(): Promise<Results<TextRow>> {
    return new Promise((resolve, reject) => {
      const finished = this.#db.transaction(async (tx) => {
        await new Promise<void>((commit, rollBack) => {
          const end = async (isCommit: boolean): Promise<void> => {
            this.#transaction = undefined;
            if (isCommit) commit();
            else rollBack(new RolledBackError());
            await finished.catch((error: unknown) => {
              if (!(error instanceof RolledBackError)) throw error;
            });
          };
          this.#transaction = { tx, end };
          resolve(NOTHING);
        });
      });
      finished.catch(reject);
    });
  }
}

const NOTHING: Results<TextRow> = { rows: [], fields: [], affectedRows: 0 };

class RolledBackError extends Error {}

export function readDatabase(caller: string, given: unknown): PGliteInterface {
  const allowed = 'a PGlite (a transaction of it, or a Pool of the package pg, is none)';
  return readClient(caller, 'pglite', given, allowed, isDatabase);
}

function isDatabase(value: unknown): value is PGliteInterface {
  if (typeof value !== 'object' || value === null) return false;
  const { exec, query, transaction, waitReady } = value as Partial<PGliteInterface>;
  const methods: unknown[] = [exec, query, transaction];
  return methods.every((method) => typeof method === 'function') && waitReady !== undefined;
}
