import type { TextRow } from '../pool/text-query.ts';

/** The session ended, or counts as ended: the server has released its locks and removed it from every queue. */
export class SessionEndedError extends Error {}

export interface SessionStatement {
  /** The name of a statement that is prepared once for each session. */
  readonly name?: string;
  readonly text: string;
  readonly values?: unknown[];
}

/** Sends the statements of one session, one after the other. */
export interface SessionStatements {
  readonly alive: boolean;
  ask(statement: SessionStatement): Promise<readonly TextRow[]>;
  /** Sends a statement like `ask`, but without a promise, for statements that are sent by the thousand. */
  put(
    statement: SessionStatement,
    resolve: (rows: readonly TextRow[]) => void,
    reject: (error: unknown) => void,
  ): void;
}
