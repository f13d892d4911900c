import type pg from 'pg';
import type { Value } from '../pool/bind-message.ts';
import { NamedStatement } from '../pool/named-statement.ts';
import { endConnection } from '../pool/own-connection.ts';
import { LockSteps } from './lock-steps.ts';
import { LifeSign, type Moment, thisMoment } from './life-sign.ts';
import type { TokenSequence } from './token-sequence.ts';

export type Row = readonly (string | null)[];

/** Values as the server writes them. */
const texts: pg.CustomTypesConfig = { getTypeParser: () => (value: string) => value };

/** How soon after its last answer a connection stops keeping the process alive. */
const LET_GO_MS = 10;
/** A graceful end that gets no answer is cut short. */
const GOODBYE_MS = 500;

/** The session ended, or is taken for ended: what it held is gone, and so is its place in every queue. */
export class SessionEndedError extends Error {}

export interface Statement {
  /** Prepared once for each session under this name. */
  readonly name?: string;
  readonly text: string;
  readonly values?: unknown[];
}

interface Sending {
  readonly statement: Statement;
  /** It may take as long as it takes: a wait in the server's queue. */
  readonly patient: boolean;
  resolve(rows: Row[]): void;
  reject(error: unknown): void;
}

/**
 * One connection to the server: statements one after the other, signs of life, and one end. The server ends it when it
 * hears nothing for `timeoutMs`; we take it for ended two thirds after the *sending* of what was last answered.
 */
export class Session {
  readonly pid: number;
  readonly client: pg.Client;
  readonly steps: LockSteps;
  /** A wait stands in the server's queue here, so nothing else can be asked. */
  blocked = false;
  /** The end was asked for: it is no loss. */
  closing = false;
  #ended: SessionEndedError | undefined;
  readonly #timeoutMs: number;
  readonly #life: LifeSign;
  readonly #waiting: Sending[] = [];
  #sending: Sending | undefined;
  readonly #pulse: NodeJS.Timeout;
  readonly #listeners: ((error: SessionEndedError) => void)[] = [];
  readonly #probe: () => Statement;
  #probing: Promise<void> | undefined;
  #probedAt = performance.now();
  readonly #heard: (rows: Row[]) => void;
  /** Whether the process may not end while this connection is open. */
  #keepsAlive = true;
  #lettingGo = false;

  /** `probe` is asked every third of the timeout, and `heard` judges its answer. */
  constructor(
    client: pg.Client,
    pid: number,
    timeoutMs: number,
    greetedAt: Moment,
    probe: () => Statement,
    heard: (rows: Row[]) => void,
    tokens: TokenSequence | undefined,
  ) {
    this.client = client;
    this.steps = new LockSteps(this, tokens);
    this.pid = pid;
    this.#timeoutMs = timeoutMs;
    this.#life = new LifeSign(greetedAt);
    this.#probe = probe;
    this.#heard = heard;
    client.on('error', (error) => this.end(error));
    client.on('end', () => this.end(new Error('the connection was closed')));
    this.#pulse = setInterval(() => this.#beat(), timeoutMs / 12);
    this.#pulse.unref();
    // A lease does not keep a process alive; a statement does (docs/spec.md §4.5).
    this.#keepAlive(false);
  }

  get alive(): boolean {
    return this.#ended === undefined;
  }

  /** How long the session is known to live from now on; 0 or less: nobody may rely on it. */
  get remainingMs(): number {
    if (this.#ended !== undefined) return Number.NEGATIVE_INFINITY;
    return (this.#timeoutMs * 2) / 3 - this.#life.elapsedMs;
  }

  onEnd(listener: (error: SessionEndedError) => void): void {
    this.#listeners.push(listener);
  }

  /** Sends a statement when those before it are answered. */
  ask(statement: Statement, patient = false): Promise<Row[]> {
    return new Promise((resolve, reject) => this.put(statement, resolve, reject, patient));
  }

  /** The same without a promise, for the statements of which there are many. */
  put(
    statement: Statement,
    resolve: (rows: Row[]) => void,
    reject: (error: unknown) => void,
    patient = false,
  ): void {
    if (this.#ended !== undefined) return reject(this.#ended);
    this.#waiting.push({ statement, patient, resolve, reject });
    if (this.#sending === undefined) this.#send();
  }

  /** Resolves when the server answered something that was sent after this call, or a little before it. */
  async fresh(): Promise<void> {
    if (this.alive && this.#life.elapsedMs < this.#timeoutMs / 6) return;
    await this.#askAfter();
  }

  #askAfter(): Promise<void> {
    this.#probedAt = performance.now();
    this.#probing ??= this.ask(this.#probe())
      .then((rows) => this.#heard(rows))
      .finally(() => {
        this.#probing = undefined;
      });
    return this.#probing;
  }

  /** Takes the session for ended, now and for good, and ends it. */
  end(why: unknown): void {
    if (this.#ended !== undefined) return;
    const cause = why instanceof Error ? why.message : String(why);
    this.#ended = new SessionEndedError(`the session with PostgreSQL ended: ${cause}`, { cause: why });
    clearInterval(this.#pulse);
    const lost = [this.#sending, ...this.#waiting.splice(0)];
    this.#sending = undefined;
    endConnection(this.client);
    // Not waited for: a cut connection may never say goodbye.
    this.client.connection.stream.destroy();
    for (const listener of this.#listeners) listener(this.#ended);
    for (const sending of lost) sending?.reject(this.#ended);
  }

  /** Says goodbye, so that the server knows at once. */
  async close(): Promise<void> {
    if (this.#ended !== undefined) return;
    this.closing = true;
    clearInterval(this.#pulse);
    this.#keepAlive(true);
    let timer: NodeJS.Timeout | undefined;
    const tooLong = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, GOODBYE_MS);
    });
    await Promise.race([this.client.end().catch(() => undefined), tooLong]);
    clearTimeout(timer);
    this.end(new Error('it was closed'));
  }

  #send(): void {
    const sending = this.#waiting.shift();
    this.#sending = sending;
    if (sending === undefined) return;
    const sentAt = thisMoment();
    this.#keepAlive(!sending.patient);
    const settle = (): boolean => {
      // What ended before its answer is rejected already.
      if (this.#ended !== undefined) return false;
      // Nothing is held here after a wait until the next statement was answered: that one is counted from its sending.
      if (sending.patient) this.#life.restart();
      // An answer that came too late revives nothing: others may hold by now (docs/spec.md §8.2).
      else if (this.#expired()) return false;
      else this.#life.seen(sentAt);
      this.#sending = undefined;
      if (this.#waiting.length > 0) this.#send();
      else this.#letGo();
      return true;
    };
    const answered = (error: Error | null | undefined, rows: Row[] = []): void => {
      if (error && isFatal(error)) return this.end(error);
      if (!settle()) return;
      if (error) sending.reject(error);
      else sending.resolve(rows);
    };
    const { name, text, values = [] } = sending.statement;
    if (name !== undefined) {
      this.client.query(
        new NamedStatement(name, text, values as Value[], (error, done) => answered(error, done?.rows)),
      );
    } else {
      const query: pg.QueryArrayConfig = { text, values, rowMode: 'array', types: texts };
      this.client.query(query, (error: Error | undefined, result?: pg.QueryArrayResult<(string | null)[]>) =>
        answered(error, result?.rows),
      );
    }
  }

  #beat(): void {
    // A wait in the queue holds nothing; whether it is still there the main session asks.
    if (this.#sending?.patient === true || this.#expired()) return;
    // Also when other statements prove the session all the time: the probe asks for more than that.
    if (performance.now() - this.#probedAt >= this.#timeoutMs / 3) this.#askAfter().catch(ignore);
  }

  /** A little later: most answers are followed by another statement at once. */
  #letGo(): void {
    if (this.#lettingGo) return;
    this.#lettingGo = true;
    setTimeout(() => {
      this.#lettingGo = false;
      if (this.#sending === undefined && this.#ended === undefined && !this.closing) this.#keepAlive(false);
    }, LET_GO_MS).unref();
  }

  #keepAlive(alive: boolean): void {
    if (alive === this.#keepsAlive) return;
    this.#keepsAlive = alive;
    const stream = this.client.connection.stream as Partial<Record<'ref' | 'unref', () => void>>;
    if (alive) stream.ref?.call(stream);
    else stream.unref?.call(stream);
  }

  #expired(): boolean {
    if (this.#ended !== undefined) return true;
    if (this.remainingMs > 0) return false;
    this.end(new Error(`no answer within ${Math.round((this.#timeoutMs * 2) / 3)} ms`));
    return true;
  }
}

/** The connection broke, or the server ends it with this (57P: by an administrator, or after a silence). */
function isFatal(error: Error): boolean {
  const { code } = error as { code?: unknown };
  return typeof code !== 'string' || !/^[0-9A-Z]{5}$/.test(code) || code.startsWith('57P');
}

function ignore(): void {
  // A session that ended tells so itself; any other answer is a sign of life too.
}
