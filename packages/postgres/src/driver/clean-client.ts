import type { EventEmitter } from 'node:events';
import { answerWithin } from '@locks/core/backend';
import type pg from 'pg';
import {
  ASK_OUTSIDE,
  IN_FAILED_TRANSACTION,
  OpenTransactionError,
  warnOfOpenTransaction,
} from './open-transaction.ts';
import { asError, codeOf } from './server-error.ts';

/** The default of `max` of pg's pool. */
const DEFAULT_MAX = 10;
/** The silence after which a client counts as broken, whatever TCP says. */
const ANSWER_MS = 5_000;
/** The status of a session outside of a transaction, as `ReadyForQuery` tells it. */
const IDLE = 'I';

/** The parts of pg's client that its types lack; its native client has none of them. */
interface ClientParts {
  readonly readyForQuery?: boolean;
  readonly connection?: EventEmitter;
  readonly _txStatus?: string | null;
}

/** The transaction status of a client of pg: the one that the server told last. */
class TransactionStatus {
  readonly #client: pg.ClientBase & ClientParts;
  #last: string | undefined;

  constructor(client: pg.ClientBase) {
    this.#client = client;
    // pg before 8.17 does not keep it.
    this.#last = this.#client._txStatus ?? undefined;
    // Prepended, because pg's own listener ends the query, whose caller may ask for the status.
    this.#client.connection?.prependListener('readyForQuery', ({ status }: { readonly status?: string }) => {
      this.#last = status;
    });
  }

  /** Whether the last statement that was answered left a transaction open. */
  get wasOpen(): boolean {
    return this.#last !== undefined && this.#last !== IDLE;
  }

  /**
   * Tells whether a transaction is open, or that the server is silent. Asks the server only while a query of the application is under way,
   * or after a failure.
   */
  check(done: (isOpen: boolean, silence?: Error) => void): void {
    if (this.#last !== undefined && this.#client.readyForQuery === true) return done(this.wasOpen);
    void this.#askInTime(done);
  }

  async #askInTime(done: (isOpen: boolean, silence?: Error) => void): Promise<void> {
    let isOpen = false;
    let silence: Error | undefined;
    try {
      isOpen = await answerWithin(this.#ask(), ANSWER_MS);
    } catch (error) {
      silence = asError(error);
    }
    done(isOpen, silence);
  }

  #ask(): Promise<boolean> {
    const question = { text: ASK_OUTSIDE, rowMode: 'array' };
    return new Promise((resolve) => {
      this.#client.query(question, (error: Error | null, result?: { readonly rows: unknown[][] }) => {
        // Any other failure meets the statement of the caller too.
        if (error !== null && error !== undefined) resolve(codeOf(error) === IN_FAILED_TRANSACTION);
        else resolve(Number(result?.rows[0]?.[0]) !== 1);
      });
    });
  }
}

const statuses = new WeakMap<pg.ClientBase, TransactionStatus>();

export function transactionStatusOf(client: pg.ClientBase): TransactionStatus {
  let status = statuses.get(client);
  if (status === undefined) {
    status = new TransactionStatus(client);
    statuses.set(client, status);
  }
  return status;
}

/** The most clients that a pool of pg lends at a time. */
export function limitOf(pool: pg.Pool): number {
  return pool.options?.max ?? DEFAULT_MAX;
}

type Lend = (error: Error | null | undefined, client?: pg.PoolClient) => void;

/**
 * Takes a client of a pool. Clients that the application has returned with an open transaction are passed over, and go back as
 * they are. Gives an {@link OpenTransactionError} when the pool has no other client at once.
 */
export function takeCleanClient(pool: pg.Pool, passedOver: pg.PoolClient[], lend: Lend): void {
  const give: Lend = (error, client) => {
    for (const other of passedOver) {
      other.removeListener('error', ignore);
      other.release();
    }
    lend(error, client);
  };
  pool.connect((error, client) => {
    if (client === undefined) return give(error);
    // The pool listens to idle clients only, and an error without a listener ends the process.
    client.on('error', ignore);
    transactionStatusOf(client).check((isOpen, silence) => {
      if (!isOpen) {
        client.removeListener('error', ignore);
        if (silence === undefined) return give(undefined, client);
        client.release(silence);
        return give(silence);
      }
      warnOfOpenTransaction(pool);
      // The client is kept until another one was found: a pool lends the one that came back last.
      passedOver.push(client);
      if (pool.idleCount > 0 || pool.totalCount < limitOf(pool)) takeCleanClient(pool, passedOver, lend);
      else give(new OpenTransactionError());
    });
  });
}

function ignore(): void {
  // The query under way fails by itself, and the pool removes the client when it comes back.
}
