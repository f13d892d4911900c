import type { Statement, TextRow } from '../driver/postgres-driver.ts';

/** The session ended, or counts as ended: the server has released its locks and removed it from every queue. */
export class SessionEndedError extends Error {}

/** Sends the statements of one session, one after the other. */
export interface SessionStatements {
  readonly alive: boolean;
  ask(statement: Statement): Promise<readonly TextRow[]>;
  /** Sends a statement like `ask`, but without a promise, for statements that are sent by the thousand. */
  put(
    statement: Statement,
    resolve: (rows: readonly TextRow[]) => void,
    reject: (error: unknown) => void,
  ): void;
}
