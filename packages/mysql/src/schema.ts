import { createHash } from 'node:crypto';
import { LockError } from '@locks/core';
import type { Connections, MysqlSession } from './connections.ts';
import { isMissingTable, MigrationError } from './mysql-error.ts';
import type { MysqlStatements } from './mysql-statements.ts';
import { createStatements, SCHEMA_VERSION } from './tables.ts';

/** The share of a statement's time limit that is spent on waiting for the user lock. */
const LOCK_WAIT_SHARE = 0.8;

/** Makes sure, once, that the tables exist and have the version of this package. */
export class Schema {
  readonly #connections: Connections;
  readonly #statements: MysqlStatements;
  readonly #createTables: boolean;
  readonly #lockWaitSeconds: number;
  #ready: Promise<void> | undefined;

  constructor(
    connections: Connections,
    statements: MysqlStatements,
    createTables: boolean,
    statementTimeoutMs: number,
  ) {
    this.#connections = connections;
    this.#statements = statements;
    this.#createTables = createTables;
    this.#lockWaitSeconds = (LOCK_WAIT_SHARE * statementTimeoutMs) / 1_000;
  }

  /** Resolves when the tables may be used. After a failure the next call tries again. */
  ready(): Promise<void> {
    this.#ready ??= this.#prepare().catch((error: unknown) => {
      this.#ready = undefined;
      throw error;
    });
    return this.#ready;
  }

  /** Called when the tables are missing: the next call makes them again. */
  forget(): void {
    this.#ready = undefined;
  }

  async #prepare(): Promise<void> {
    const found = await this.#connections.session(Infinity, (session) => this.#version(session));
    if (found === SCHEMA_VERSION) return;
    this.#refuseNewer(found);
    if (!this.#createTables) {
      throw new LockError(
        'LOCK_UNSUPPORTED',
        `@locks/mysql: the table ${this.#statements.tables.locks} is missing or of an older version, and createTables is ` +
          'false: run schemaStatements() of this version of the package',
        { backend: 'mysql' },
      );
    }
    await this.#connections.session(Infinity, (session) => this.#migrate(session));
  }

  /** Creates the tables under a user lock: other clients wait for the lock, and find the tables made. */
  async #migrate(session: MysqlSession): Promise<void> {
    const name = createHash('sha256').update(this.#statements.tables.locks).digest('hex').slice(0, 40);
    // A user lock belongs to the whole server, and its name has at most 64 characters.
    const lock = `CONCAT('locks ', LEFT(SHA1(CONCAT(COALESCE(DATABASE(), ''), ' ${name}')), 40))`;
    const waitSeconds = this.#lockWaitSeconds;
    // A session may have a `sql_select_limit` of 0, hence the LIMIT.
    const [row] = await session.read(`SELECT GET_LOCK(${lock}, ${waitSeconds}), @@autocommit LIMIT 1`);
    const answer = row?.[0]?.toString();
    if (answer !== '1') {
      const { locks } = this.#statements.tables;
      throw new MigrationError(
        answer === '0'
          ? `another client has been migrating ${locks} for ${waitSeconds} s`
          : `the server gave no user lock for the migration of ${locks}: GET_LOCK() was answered with ${answer ?? 'NULL'}`,
      );
    }
    try {
      const found = await this.#version(session);
      this.#refuseNewer(found);
      if (found === SCHEMA_VERSION) return;
      for (const statement of createStatements(this.#statements.tables)) await session.write(statement);
    } finally {
      await session.read(`SELECT RELEASE_LOCK(${lock}), @@autocommit LIMIT 1`);
    }
  }

  async #version(session: MysqlSession): Promise<number> {
    try {
      const [row] = await session.read(this.#statements.schemaVersion());
      return Number(row?.[0] ?? 0);
    } catch (error) {
      if (isMissingTable(error)) return 0;
      throw error;
    }
  }

  #refuseNewer(found: number): void {
    if (found <= SCHEMA_VERSION) return;
    throw new LockError(
      'LOCK_UNSUPPORTED',
      `@locks/mysql: the tables of ${this.#statements.tables.locks} have version ${found}, this package knows ${SCHEMA_VERSION}: ` +
        'upgrade @locks/mysql in this process, or give it a tablePrefix of its own',
      { backend: 'mysql' },
    );
  }
}
