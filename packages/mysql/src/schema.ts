import { createHash } from 'node:crypto';
import { LockError } from '@locks/core';
import { StoreLayoutError } from '@locks/core/backend';
import { URGENT } from '@locks/record-protocol/table';
import type { Connections, MysqlSession } from './connections.ts';
import { isMissingTable, MigrationError } from './mysql-error.ts';
import type { MysqlStatements } from './mysql-statements.ts';
import { createStatements, onceTables, SCHEMA_VERSION } from './tables.ts';

/** The share of a statement's time limit that is spent on waiting for the user lock. */
const LOCK_WAIT_SHARE = 0.8;

/** Makes sure, once, that the tables exist and have the version of this package. */
export class Schema {
  readonly #connections: Connections;
  readonly #statements: MysqlStatements;
  readonly #autoPrepare: boolean;
  readonly #lockWaitSeconds: number;
  /** For `prepare()`: a migration may take long. */
  readonly #unhurried: Connections;
  #ready: Promise<void> | undefined;

  constructor(
    connections: Connections,
    statements: MysqlStatements,
    autoPrepare: boolean,
    requestTimeoutMs: number,
    unhurried: Connections,
  ) {
    this.#unhurried = unhurried;
    this.#connections = connections;
    this.#statements = statements;
    this.#autoPrepare = autoPrepare;
    this.#lockWaitSeconds = (LOCK_WAIT_SHARE * requestTimeoutMs) / 1_000;
  }

  /** Resolves when the tables may be used. After a failure the next call tries again. */
  ready(): Promise<void> {
    this.#ready ??= this.#find().catch((error: unknown) => {
      this.#ready = undefined;
      throw error;
    });
    return this.#ready;
  }

  /** Called when the tables are missing: the next call makes them again. */
  forget(): void {
    this.#ready = undefined;
  }

  async #find(): Promise<void> {
    const found = await this.#connections.session(Infinity, (session) => this.#version(session), URGENT);
    if (found === SCHEMA_VERSION) return;
    this.#refuseOther(found);
    if (!this.#autoPrepare) {
      throw new LockError(
        'LOCK_UNSUPPORTED',
        `@locks/mysql: the table ${this.#statements.tables.locks} is missing, and autoPrepare is false: call prepare() of the locks as a ` +
          'user with the right to create tables',
        { backend: 'mysql' },
      );
    }
    await this.#connections.session(Infinity, (session) => this.#migrate(session), URGENT);
  }

  /** Makes all tables of this package, and waits for others that do so until the signal aborts. */
  async prepare(signal?: AbortSignal): Promise<void> {
    for (;;) {
      try {
        const make = async (session: MysqlSession): Promise<void> => {
          await this.#migrate(session);
          await this.#makeOnceTables(session);
        };
        await this.#unhurried.session(Infinity, make, URGENT);
        return;
      } catch (error) {
        const mayTryAgain = error instanceof MigrationError && error.isUnderWay;
        if (!mayTryAgain || signal?.aborted === true) throw error;
      }
    }
  }

  /** Who may not create tables may prepare those that are there. */
  async #makeOnceTables(session: MysqlSession): Promise<void> {
    for (const { name, create } of onceTables(this.#statements.tables)) {
      const isThere = await session.read(`SELECT EXISTS (SELECT 1 FROM ${name}), @@autocommit LIMIT 1`).then(
        () => true,
        (error: unknown) => {
          if (isMissingTable(error)) return false;
          throw error;
        },
      );
      if (!isThere) await session.write(create);
    }
  }

  /** Creates the tables under a user lock: other clients wait for the lock, and find the tables made. */
  async #migrate(session: MysqlSession): Promise<void> {
    const name = createHash('sha256').update(this.#statements.tables.locks).digest('hex').slice(0, 40);
    // A user lock belongs to the whole server, and its name has at most 64 characters.
    const lock = `CONCAT('locks ', LEFT(SHA1(CONCAT(COALESCE(DATABASE(), ''), ' ${name}')), 40))`;
    const waitSeconds = this.#lockWaitSeconds;
    // CREATE TABLE would commit a transaction that the application has left open.
    await session.checkOutside();
    // A session may have a `sql_select_limit` of 0, hence the LIMIT.
    const [row] = await session.read(`SELECT GET_LOCK(${lock}, ${waitSeconds}), @@autocommit LIMIT 1`);
    const answer = row?.[0]?.toString();
    if (answer !== '1') {
      const { locks } = this.#statements.tables;
      throw new MigrationError(
        answer === '0'
          ? `another client has been migrating ${locks} for ${waitSeconds} s`
          : `the server gave no user lock for the migration of ${locks}: GET_LOCK() was answered with ${answer ?? 'NULL'}`,
        answer === '0',
      );
    }
    try {
      const found = await this.#version(session);
      this.#refuseOther(found);
      if (found === SCHEMA_VERSION) return;
      for (const statement of createStatements(this.#statements.tables)) await session.write(statement);
    } finally {
      await session.read(`SELECT RELEASE_LOCK(${lock}), @@autocommit LIMIT 1`);
    }
  }

  /** The version of the tables; `undefined` where they are missing, or not complete. */
  async #version(session: MysqlSession): Promise<number | undefined> {
    try {
      const [row] = await session.read(this.#statements.schemaVersion());
      const version = row?.[0] ?? undefined;
      return version === undefined ? undefined : Number(version);
    } catch (error) {
      if (isMissingTable(error)) return undefined;
      throw error;
    }
  }

  #refuseOther(found: number | undefined): void {
    if (found === undefined || found === SCHEMA_VERSION) return;
    const { locks } = this.#statements.tables;
    throw new StoreLayoutError(`the tables of ${locks}`, String(found), SCHEMA_VERSION, {
      other: 'another tablePrefix',
      reset: 'drop these tables (fencing tokens start anew)',
    });
  }
}
