import type { AcquireRequest } from '@locks/core/backend';
import type { Cells, Connections, Session, WriteResult } from './connections.ts';
import type { LockState } from './lock-state.ts';
import { isMissingTable } from './mysql-error.ts';
import type { Schema } from './schema.ts';
import { freshVersion, type Snapshot, type Statements, type Write } from './statements.ts';

/** Until when an answer is of use, on the clock of the call. */
export interface TimeLimit {
  now(): number;
  readonly deadline: number;
}

/** A snapshot, and when it was asked for, on `performance.now()`. */
export interface Look extends Snapshot {
  readonly askedAt: number;
}

/**
 * Whether something newer, of the server's time `at`, came in while the look was under way. Of what came in before it was
 * asked for it is the newer one, whatever the server's clock says: that may have been set back.
 */
export function isOvertaken({ now, askedAt }: Look, at: number, learnedAt: number): boolean {
  return learnedAt > askedAt && at > now;
}

const nothing: WriteResult = { rows: 0, value: 0 };

/** The tables, one round trip to a method; what each statement does stands in {@link Statements}. */
export class Store {
  readonly statements: Statements;
  readonly #connections: Connections;
  readonly #schema: Schema;

  constructor(connections: Connections, statements: Statements, schema: Schema) {
    this.#connections = connections;
    this.statements = statements;
    this.#schema = schema;
  }

  /** The token, if the resource was free, and still wanted when there was a connection. */
  async take(
    request: AcquireRequest,
    limit: TimeLimit,
    isWanted: () => boolean,
  ): Promise<{ readonly version: number; readonly token: number } | undefined> {
    const version = freshVersion();
    const sql = this.statements.take({ request, version });
    const { value } = await this.session(limit, async (session) =>
      isWanted() ? session.write(sql) : nothing,
    );
    return value > 0 ? { version, token: value } : undefined;
  }

  /** Whether the state was still the one that the draft was made from; gives the server's time of the write. */
  async compareAndWrite(write: Write, limit: TimeLimit): Promise<number | undefined> {
    const { rows, value } = await this.write(this.statements.write(write), limit);
    return rows === 1 ? value : undefined;
  }

  async snapshot(names: readonly string[], known: readonly number[], limit: TimeLimit): Promise<Look> {
    const askedAt = performance.now();
    const rows = await this.read(this.statements.read(names, known), limit);
    return { ...this.statements.snapshot(rows, known), askedAt };
  }

  async state(name: string, limit: TimeLimit): Promise<{ look: Look; state: LockState | undefined }> {
    const look = await this.snapshot([name], [], limit);
    return { look, state: look.states.get(name) };
  }

  write(sql: string, limit: TimeLimit): Promise<WriteResult> {
    return this.session(limit, (session) => session.write(sql));
  }

  read(sql: string, limit: TimeLimit): Promise<readonly Cells[]> {
    return this.session(limit, (session) => session.read(sql));
  }

  async session<T>(limit: TimeLimit, work: (session: Session) => Promise<T>): Promise<T> {
    await this.#schema.ready();
    try {
      return await this.#connections.session(limit.deadline - limit.now(), work);
    } catch (error) {
      if (isMissingTable(error)) this.#schema.forget();
      throw error;
    }
  }
}
