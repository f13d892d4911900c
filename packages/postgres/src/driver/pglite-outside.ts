import type { PGliteInterface } from '@electric-sql/pglite';
import { OpenTransactionError } from './open-transaction.ts';
import type { TextRow, Value } from './postgres-driver.ts';
import { withLiterals } from './sql-text.ts';

/** The session of a PGlite, whose transactions go one after the other; the method is missing in the types of PGlite. */
export type PgliteSession = Pick<PGliteInterface, 'execProtocol' | 'runExclusive'> & {
  readonly waitReady: Promise<unknown>;
  _runExclusiveTransaction?<T>(work: () => Promise<T>): Promise<T>;
};

/** The parts of a message of the server that are read. */
interface Message {
  readonly name: string;
  /** Of `readyForQuery`. */
  readonly status?: string;
  /** Of `dataRow` the values, of `rowDescription` the columns. */
  readonly fields?: readonly unknown[];
}

const SAYS =
  'the application has sent BEGIN to the one session of PGlite, and the ROLLBACK would undo what is sent meanwhile. Use ' +
  '`transaction()` of PGlite, or end the transaction first.';

/** A message that asks for the state of the session. */
const SYNC = Buffer.from([...Buffer.from('S'), 0, 0, 0, 4]);
const NO_FILES = { syncToFs: false };

/**
 * Runs a query outside of every transaction of the application. One of `transaction()` is waited for; after a BEGIN that the
 * application has sent as a statement, the query is not sent.
 *
 * @throws OpenTransactionError
 */
export async function queryOutside(
  db: PgliteSession,
  text: string,
  values: readonly Value[],
): Promise<{ readonly columns: readonly string[]; readonly rows: readonly TextRow[] }> {
  await db.waitReady;
  const send = async (): Promise<readonly Message[]> => {
    if (readStatus(await messagesOf(db, SYNC, NO_FILES)) !== 'I') throw new OpenTransactionError(SAYS);
    try {
      return await messagesOf(db, simpleQuery(withLiterals(text, values)), {});
    } finally {
      // A failed message leaves the session unsynchronized.
      await messagesOf(db, SYNC, NO_FILES);
    }
  };
  const exclusive = (): Promise<readonly Message[]> => db.runExclusive(send);
  const messages = await (db._runExclusiveTransaction?.(exclusive) ?? exclusive());
  const columns = messages.find(({ name }) => name === 'rowDescription')?.fields ?? [];
  return {
    columns: columns.map((column) => (column as { readonly name: string }).name),
    rows: messages.filter(({ name }) => name === 'dataRow').map(({ fields }) => fields as TextRow),
  };
}

async function messagesOf(
  db: PgliteSession,
  message: Buffer,
  options: { readonly syncToFs?: boolean },
): Promise<readonly Message[]> {
  return (await db.execProtocol(message, options)).messages as readonly Message[];
}

function readStatus(messages: readonly Message[]): string | undefined {
  return messages.findLast(({ name }) => name === 'readyForQuery')?.status;
}

function simpleQuery(text: string): Buffer {
  const body = Buffer.from(`${text}\0`);
  const head = Buffer.from('Q\0\0\0\0');
  head.writeInt32BE(body.length + 4, 1);
  return Buffer.concat([head, body]);
}
