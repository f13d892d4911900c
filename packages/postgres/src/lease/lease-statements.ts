import { type Call, PRIORITIES, type Priority } from '@locks/core/backend';
import type { Value } from '../driver/postgres-driver.ts';
import {
  type FreeConnection,
  NoConnectionError,
  type OutgoingStatement,
  type PostgresStatements,
  rejectLate,
  type StatementResult,
} from '../driver/postgres-statements.ts';
import { codeOf } from '../driver/server-error.ts';
import { type LeaseSql, leaseSql } from './lease-sql.ts';
import type { CheckedLeaseOptions } from './options.ts';
import { ensureSchema } from './schema.ts';

/** The interval at which a process that uses locks removes expired rows that nobody asks for. */
const SWEEP_MS = 60_000;
const FIND_SCHEMA_MS = 10_000;

/** Statements on the schema of a backend, which is looked for before the first of them. */
export class LeaseStatements {
  readonly sql: LeaseSql;
  readonly #statements: PostgresStatements;
  readonly #settings: CheckedLeaseOptions;
  #schema: Promise<void> | undefined;
  #schemaFound = false;
  #sweepAt = performance.now() + SWEEP_MS;

  constructor(statements: PostgresStatements, settings: CheckedLeaseOptions) {
    this.sql = leaseSql(settings.schema);
    this.#statements = statements;
    this.#settings = settings;
  }

  /** Whether the schema was found, and statements on it are prepared. */
  get isPrepared(): boolean {
    return this.#schemaFound && this.#statements.prepare;
  }

  async run(
    text: string,
    values: readonly Value[],
    call: Call,
    priority: Priority,
  ): Promise<StatementResult> {
    if (!this.#schemaFound) await this.#findSchema();
    return await this.#watched(this.#statements.run(text, values, call, priority));
  }

  /** Runs one statement, unless its caller has given up when a connection is free: it could arrive after its own abandon. */
  async runWanted(
    text: string,
    values: readonly Value[],
    call: Call,
    priority: Priority,
  ): Promise<StatementResult> {
    const connection = await this.connection(priority);
    const sentAt = call.now();
    const leftMs = call.deadline - sentAt;
    const isGivenUp = call.signal?.aborted === true;
    if (!isGivenUp && leftMs > 0) return await this.send(connection, { text, values, sentAt, leftMs });
    connection.giveBack();
    if (isGivenUp) throw new NoConnectionError();
    return await new Promise((_, reject) => rejectLate(reject));
  }

  /** Resolves when a connection is free for {@link send}. */
  async connection(priority: Priority): Promise<FreeConnection> {
    if (!this.#schemaFound) await this.#findSchema();
    return await this.#statements.connection(priority);
  }

  send(connection: FreeConnection, statement: OutgoingStatement): Promise<StatementResult> {
    return this.#watched(connection.send(statement));
  }

  async #watched(result: Promise<StatementResult>): Promise<StatementResult> {
    if (performance.now() > this.#sweepAt) this.#sweep();
    try {
      return await result;
    } catch (error) {
      // The schema was dropped, or the pool reaches another database by now: the next call looks for the schema again.
      if (isMissing(error)) this.#schemaFound = false;
      throw error;
    }
  }

  async #findSchema(): Promise<void> {
    const { schema, autoPrepare } = this.#settings;
    // Concurrent calls share this check of the schema, so it has a deadline of its own.
    const now = (): number => performance.now();
    const call = { now, deadline: now() + FIND_SCHEMA_MS };
    this.#schema ??= ensureSchema(this.#statements, schema, autoPrepare, call).finally(() => {
      this.#schema = undefined;
    });
    await this.#schema;
    this.#schemaFound = true;
  }

  #sweep(): void {
    const now = (): number => performance.now();
    this.#sweepAt = now() + SWEEP_MS;
    const call = { now, deadline: this.#sweepAt };
    this.#statements.run(this.sql.sweep, [], call, PRIORITIES.holder).catch(() => {
      // The next sweep tries again.
    });
  }
}

/** Whether the schema, a table or a function does not exist. */
function isMissing(error: unknown): boolean {
  return /^(?:3F000|42P01|42883)$/.test(codeOf(error));
}
