import { halvesOf } from './advisory-key.ts';
import type { ServerMode } from './run.ts';
import type { Row, Session, Statement } from './session.ts';
import type { TokenSequence } from './token-sequence.ts';

/** As `pg_locks` shows a lock whose two halves are the first parameters. */
export const IS_THIS_LOCK = `locktype = 'advisory' AND objsubid = 1 AND classid = $1::oid AND objid = $2::oid
  AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`;

/** More in one statement would hold up the others. */
const MOST = 1_024;

const FUNCTIONS = {
  'try-exclusive': 'pg_try_advisory_lock',
  'try-shared': 'pg_try_advisory_lock_shared',
  'unlock-exclusive': 'pg_advisory_unlock',
  'unlock-shared': 'pg_advisory_unlock_shared',
} as const;

type Operation = keyof typeof FUNCTIONS;

interface NamedText {
  readonly name: string;
  readonly text: string;
}

interface Step {
  readonly operation: Operation;
  readonly key: string;
  resolve(row: Row): void;
  reject(error: unknown): void;
}

/**
 * What takes and gives back locks of a session without waiting. One step is one statement; those that come while it is
 * under way go together in the next, so that a thousand locks are not a thousand round trips.
 */
export class LockSteps {
  readonly #session: Session;
  readonly #tokens: TokenSequence | undefined;
  readonly #pending: Step[] = [];
  readonly #texts: Readonly<Record<Operation, NamedText>>;
  #sending = false;

  constructor(session: Session, tokens: TokenSequence | undefined) {
    this.#session = session;
    this.#tokens = tokens;
    this.#texts = {
      'try-exclusive': this.#textOf('try-exclusive'),
      'try-shared': this.#textOf('try-shared'),
      'unlock-exclusive': this.#textOf('unlock-exclusive'),
      'unlock-shared': this.#textOf('unlock-shared'),
    };
  }

  /**
   * The token, `null` where there are none; `undefined`: somebody holds, or waits before us. `together`: others are asked
   * in the same turn of the event loop, and go into the same statement.
   */
  async try(key: string, mode: ServerMode, together = false): Promise<string | null | undefined> {
    const [taken, token = null] = await this.#do(`try-${mode}`, key, together);
    return taken === 't' ? token : undefined;
  }

  /** Whether the session had it. */
  async unlock(key: string, mode: ServerMode): Promise<boolean> {
    const [unlocked] = await this.#do(`unlock-${mode}`, key);
    return unlocked === 't';
  }

  /** A statement that failed, or was cancelled, may have locked all the same: nobody would know of it. */
  async giveBackIfHeld(key: string, mode: ServerMode): Promise<void> {
    if (!this.#session.alive) return;
    // Asked first, because the server's log gets a warning for every unlock of what is not locked.
    const asked = this.#session.ask({
      text: `SELECT ${FUNCTIONS[`unlock-${mode}`]}($3::int8) FROM pg_locks
             WHERE ${IS_THIS_LOCK} AND granted AND pid = pg_backend_pid() AND mode = $4`,
      values: [...halvesOf(key), key, mode === 'shared' ? 'ShareLock' : 'ExclusiveLock'],
    });
    // Needs no memory, where the server has none left to ask with.
    await asked.catch(() => this.#session.ask(this.#statement(`unlock-${mode}`, key)));
  }

  #do(operation: Operation, key: string, together = false): Promise<Row> {
    return new Promise((resolve, reject) => {
      this.#pending.push({ operation, key, resolve, reject });
      if (this.#sending) return;
      this.#sending = true;
      if (together) setImmediate(() => this.#send());
      else this.#send();
    });
  }

  /** What has come meanwhile, until there is nothing more. */
  #send(): void {
    const steps = this.#pending.splice(0, MOST);
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
      for (const step of steps) {
        if (this.#session.alive) await this.#again(step);
        else step.reject(error);
      }
    }
  }

  /** After a failure of many at once, of which some may have been done and some not. */
  async #again(step: Step): Promise<void> {
    try {
      await this.giveBackIfHeld(step.key, step.operation.endsWith('shared') ? 'shared' : 'exclusive');
    } catch (error) {
      return step.reject(error);
    }
    if (step.operation.startsWith('unlock')) step.resolve(['t']);
    else await new Promise<void>((done) => this.#one(step, done));
  }

  #statement(operation: Operation, key: string): Statement {
    return { ...this.#texts[operation], values: [key] };
  }

  #textOf(operation: Operation): NamedText {
    const locking = `${FUNCTIONS[operation]}($1::int8)`;
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
    const choices = Object.entries(FUNCTIONS).map(([name, call]) => `WHEN '${name}' THEN ${call}(key)`);
    const token = this.#tokens === undefined ? 'NULL' : this.#tokens.expression;
    return {
      name: 'locks-many',
      // A set-returning function gives its rows in order, and each is worked on before the next.
      text: `SELECT done, CASE WHEN done AND operation LIKE 'try-%' THEN ${token} END
             FROM (SELECT operation, CASE operation ${choices.join(' ')} END AS done
                   FROM unnest($1::int8[], $2::text[]) AS step (key, operation) OFFSET 0) AS steps`,
      values: [
        `{${steps.map(({ key }) => key).join(',')}}`,
        `{${steps.map(({ operation }) => operation).join(',')}}`,
      ],
    };
  }
}
