import { codeOf } from '../driver/server-error.ts';
import type { Statement, TextRow } from '../driver/postgres-driver.ts';
import { halvesOf, isLock } from './pg-locks.ts';
import type { SessionStatements } from './session-statement.ts';
import type { TokenSequence } from './token-sequence.ts';

/** The two modes of an advisory lock. */
export type ServerMode = 'exclusive' | 'shared';

/** The most steps of one statement: a longer one would delay the other statements of the session. */
const MAX_STEPS = 1_024;

const FUNCTIONS = {
  'try-exclusive': 'pg_catalog.pg_try_advisory_lock',
  'try-shared': 'pg_catalog.pg_try_advisory_lock_shared',
  'unlock-exclusive': 'pg_catalog.pg_advisory_unlock',
  'unlock-shared': 'pg_catalog.pg_advisory_unlock_shared',
} as const;

type Operation = keyof typeof FUNCTIONS;

type LockTexts = Readonly<Record<Operation, Required<Omit<Statement, 'values'>>>>;

interface Step {
  readonly operation: Operation;
  readonly key: string;
  resolve(row: TextRow): void;
  reject(error: unknown): void;
}

/**
 * Takes and releases locks of a session without waiting for them. One step is one statement; all steps that come while a
 * statement is under way go into the next, so that a thousand locks are not a thousand round trips.
 */
export class LockSteps {
  readonly #session: SessionStatements;
  readonly #tokens: TokenSequence | undefined;
  /** The unlocks to send. They go before the tries: a release does not wait behind thousands of acquires. */
  readonly #unlocks: Step[] = [];
  readonly #tries: Step[] = [];
  readonly #texts: LockTexts;
  #sending = false;

  constructor(session: SessionStatements, tokens: TokenSequence | undefined) {
    this.#session = session;
    this.#tokens = tokens;
    const operations = Object.keys(FUNCTIONS) as Operation[];
    this.#texts = Object.fromEntries(operations.map((each) => [each, this.#textOf(each)])) as LockTexts;
  }

  /**
   * Tries a lock. Returns its token, or `null` without tokens; `undefined`: another session holds it or waits for it. After an
   * error the lock may be held all the same, and the caller has to release it.
   *
   * @param together - whether more steps come in this iteration of the event loop, which shall go into the same statement
   */
  async try(key: string, mode: ServerMode, together: boolean): Promise<string | null | undefined> {
    const [taken, token = null] = await this.#do(`try-${mode}`, key, together);
    return taken === 't' ? token : undefined;
  }

  /** Releases a lock. Resolves to whether the session held it. */
  async unlock(key: string, mode: ServerMode): Promise<boolean> {
    const [unlocked] = await this.#do(`unlock-${mode}`, key, false);
    return unlocked === 't';
  }

  /** Releases a lock that a failed or cancelled statement may have taken all the same. */
  async unlockIfHeld(key: string, mode: ServerMode): Promise<void> {
    if (!this.#session.alive) return;
    // The lock is looked up, because the server logs a warning for an unlock of what is not locked. The condition leaves out
    // the database: a session locks in its own only, and looking it up needs memory that the server may not have.
    const asked = this.#session.ask({
      text: `SELECT ${FUNCTIONS[`unlock-${mode}`]}($3::bigint) FROM pg_catalog.pg_locks
             WHERE ${isLock('$1', '$2')} AND granted AND pid OPERATOR(pg_catalog.=) pg_catalog.pg_backend_pid()
               AND mode OPERATOR(pg_catalog.=) $4::pg_catalog.text`,
      values: [...halvesOf(key), key, mode === 'shared' ? 'ShareLock' : 'ExclusiveLock'],
    });
    // A plain unlock works even if the server has no memory left for the lookup.
    await asked.catch(() => this.#session.ask(this.#statement(`unlock-${mode}`, key)));
  }

  #do(operation: Operation, key: string, together: boolean): Promise<TextRow> {
    return new Promise((resolve, reject) => {
      const pending = operation.startsWith('unlock') ? this.#unlocks : this.#tries;
      pending.push({ operation, key, resolve, reject });
      if (this.#sending) return;
      this.#sending = true;
      if (together) setImmediate(() => this.#send());
      else this.#send();
    });
  }

  /** Sends the steps that have come meanwhile, and repeats that until there are none. */
  #send(): void {
    const steps = this.#unlocks.splice(0, MAX_STEPS);
    steps.push(...this.#tries.splice(0, MAX_STEPS - steps.length));
    const [first] = steps;
    this.#sending = first !== undefined;
    if (first === undefined) return;
    if (steps.length === 1) this.#one(first, () => this.#send());
    else void this.#together(steps).then(() => this.#send());
  }

  #one({ operation, key, resolve, reject }: Step, done: () => void): void {
    this.#session.put(
      this.#statement(operation, key),
      (rows) => {
        resolve(rows[0] ?? []);
        done();
      },
      (error) => {
        reject(error);
        done();
      },
    );
  }

  async #together(steps: readonly Step[]): Promise<void> {
    try {
      const rows = await this.#session.ask(this.#statementOfMany(steps));
      steps.forEach((step, index) => step.resolve(rows[index] ?? []));
    } catch (error) {
      /** The error of a server that takes no more locks: thousands of tries need not be repeated one by one to get it. */
      let shortage: unknown;
      for (const step of steps) {
        if (!this.#session.alive) step.reject(error);
        else if (shortage !== undefined && !step.operation.startsWith('unlock')) step.reject(shortage);
        else shortage ??= await this.#repeat(step);
      }
    }
  }

  /**
   * Repeats one of several steps that failed together, each of which may have been done. Resolves to a shortage of the server.
   */
  async #repeat(step: Step): Promise<unknown> {
    try {
      await this.unlockIfHeld(step.key, step.operation.endsWith('shared') ? 'shared' : 'exclusive');
    } catch (error) {
      step.reject(error);
      return undefined;
    }
    if (step.operation.startsWith('unlock')) {
      step.resolve(['t']);
      return undefined;
    }
    let shortage: unknown;
    const reject = (error: unknown): void => {
      if (isShortage(error)) shortage = error;
      step.reject(error);
    };
    await new Promise<void>((done) => this.#one({ ...step, reject }, done));
    return shortage;
  }

  #statement(operation: Operation, key: string): Statement {
    return { ...this.#texts[operation], values: [key] };
  }

  #textOf(operation: Operation): LockTexts[Operation] {
    const locking = `${FUNCTIONS[operation]}($1::bigint)`;
    const plain = this.#tokens === undefined || operation.startsWith('unlock');
    return {
      name: `locks-${operation}`,
      text: plain
        ? `SELECT ${locking}`
        : `SELECT taken, CASE WHEN taken THEN ${this.#tokens?.expression} END
           FROM (SELECT ${locking} AS taken OFFSET 0) AS step`,
    };
  }

  #statementOfMany(steps: readonly Step[]): Statement {
    const choices = Object.entries(FUNCTIONS).map(
      ([name, call]) => `WHEN operation OPERATOR(pg_catalog.=) '${name}' THEN ${call}(key)`,
    );
    const token = this.#tokens === undefined ? 'NULL' : this.#tokens.expression;
    return {
      name: 'locks-many',
      // A set-returning function gives its rows in order, and PostgreSQL evaluates each row before the next.
      text: `SELECT done, CASE WHEN done AND pg_catalog.starts_with(operation, 'try-') THEN ${token} END
             FROM (SELECT operation, CASE ${choices.join(' ')} END AS done
                   FROM ROWS FROM (pg_catalog.unnest($1::bigint[]), pg_catalog.unnest($2::pg_catalog.text[]))
                     AS step (key, operation) OFFSET 0) AS steps`,
      values: [
        `{${steps.map(({ key }) => key).join(',')}}`,
        `{${steps.map(({ operation }) => operation).join(',')}}`,
      ],
    };
  }
}

/** Whether an error is of class 53: the server is out of memory, or of another resource. */
function isShortage(error: unknown): boolean {
  return codeOf(error).startsWith('53');
}
