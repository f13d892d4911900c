import { createHash } from 'node:crypto';
import { LockError } from '@locks/core';
import type { Connections, Session } from './connections.ts';
import { isMissingTable } from './mysql-error.ts';
import type { Statements } from './statements.ts';
import { createStatements, schemaVersion } from './tables.ts';

const lockWaitSeconds = 10;

/** Makes sure, once, that the tables are there and are ours. */
export class Schema {
  readonly #connections: Connections;
  readonly #statements: Statements;
  readonly #createTables: boolean;
  #ready: Promise<void> | undefined;

  constructor(connections: Connections, statements: Statements, createTables: boolean) {
    this.#connections = connections;
    this.#statements = statements;
    this.#createTables = createTables;
  }

  /** Resolves when the tables may be used. What failed is tried again by the next call. */
  ready(): Promise<void> {
    this.#ready ??= this.#prepare().catch((error: unknown) => {
      this.#ready = undefined;
      throw error;
    });
    return this.#ready;
  }

  /** Somebody dropped the tables. */
  forget(): void {
    this.#ready = undefined;
  }

  async #prepare(): Promise<void> {
    const found = await this.#connections.session(Infinity, (session) => this.#version(session));
    if (found === schemaVersion) return;
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

  /** One at a time: others wait, and find the work done. */
  async #migrate(session: Session): Promise<void> {
    const name = createHash('sha256').update(this.#statements.tables.locks).digest('hex').slice(0, 40);
    // Names of user locks are of the whole server, and at most 64 characters long.
    const lock = `CONCAT('locks ', LEFT(SHA1(CONCAT(COALESCE(DATABASE(), ''), ' ${name}')), 40))`;
    const [row] = await session.read(`SELECT GET_LOCK(${lock}, ${lockWaitSeconds}), @@autocommit`);
    if (row?.[0]?.toString() !== '1') {
      throw new LockError(
        'LOCK_BACKEND',
        `@locks/mysql: another client has been migrating ${this.#statements.tables.locks} for ${lockWaitSeconds} s`,
        { backend: 'mysql' },
      );
    }
    try {
      const found = await this.#version(session);
      this.#refuseNewer(found);
      if (found === schemaVersion) return;
      for (const statement of createStatements(this.#statements.tables)) await session.write(statement);
    } finally {
      await session.read(`SELECT RELEASE_LOCK(${lock}), @@autocommit`);
    }
  }

  async #version(session: Session): Promise<number> {
    try {
      const [row] = await session.read(this.#statements.schemaVersion());
      return Number(row?.[0] ?? 0);
    } catch (error) {
      if (isMissingTable(error)) return 0;
      throw error;
    }
  }

  #refuseNewer(found: number): void {
    if (found <= schemaVersion) return;
    throw new LockError(
      'LOCK_UNSUPPORTED',
      `@locks/mysql: the tables of ${this.#statements.tables.locks} have version ${found}, this package knows ${schemaVersion}: ` +
        'upgrade @locks/mysql in this process, or give it a tablePrefix of its own',
      { backend: 'mysql' },
    );
  }
}
