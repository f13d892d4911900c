import { Buffer } from 'node:buffer';
import { EventEmitter } from 'node:events';
import type { LinkStream } from '../network/link-stream.ts';
import type { Link } from '../network/link.ts';
import type { SimulatedProcess } from '../process/simulated-process.ts';
import type { SqlValue } from './embedded-postgres.ts';
import type {
  SentStatement,
  ServerSession,
  SimulatedPostgres,
  TransactionStatus,
} from './simulated-postgres.ts';
import { type Outcome, PostgresError, type Row } from './wire-format.ts';

/** A process, its network and its server, as its clients use them. */
export interface PostgresInProcess {
  readonly process: SimulatedProcess;
  readonly link: Link;
  readonly server: SimulatedPostgres;
  /** The sessions of the process that the server has not ended. */
  readonly sessions: Set<ServerSession>;
}

/** What the adapter gives to `new Client()`, a copy of the options of its pool. */
export interface SimulatedPgOptions {
  readonly simulated: PostgresInProcess;
  readonly max?: number;
}

type Value = string | number | bigint | boolean | Buffer | null | undefined | readonly Value[];
type Callback = (error: Error | null, result?: { readonly rows: Row[]; readonly rowCount: number }) => void;

/** A query that speaks the protocol itself: the client only tells it what the server answers. */
interface Submittable {
  submit(connection: SimulatedConnection): void;
  handleDataRow(message: { readonly fields: Row }): void;
  handleCommandComplete(message: { readonly text: string }): void;
  handleReadyForQuery(): void;
  handleError(error: Error): void;
}

interface Query {
  readonly statement: SentStatement;
  failed(error: Error): void;
  completed(outcome: Outcome): void;
}

/** The part of `pg` that speaks the protocol, as far as the adapter looks at it. */
class SimulatedConnection extends EventEmitter {
  readonly parsedStatements: Record<string, string> = {};
  readonly submittedNamedStatements: Record<string, string> = {};
  readonly stream: Readonly<Record<'cork' | 'uncork' | 'ref' | 'unref' | 'destroy', () => void>>;
  bound: { readonly name: string; readonly values: readonly SqlValue[] } = { name: '', values: [] };

  constructor(destroy: () => void) {
    super();
    const nothing = (): void => {};
    this.stream = { cork: nothing, uncork: nothing, ref: nothing, unref: nothing, destroy };
  }

  parse({ name, text }: { readonly name: string; readonly text: string }): void {
    this.parsedStatements[name] = text;
  }

  bind({ statement, values }: { readonly statement: string; readonly values: readonly Value[] }): void {
    this.bound = { name: statement, values: values.map(sqlValue) };
  }

  execute(): void {
    // The client sends what is bound.
  }

  sync(): void {
    // Each statement is followed by a synchronization.
  }
}

/** A client of `pg`: it sends one query after the other, and tells the status of the transaction that the server told last. */
export class SimulatedPgClient extends EventEmitter {
  readonly connection: SimulatedConnection;
  readonly #given: PostgresInProcess;
  #stream: LinkStream | undefined;
  #session: ServerSession | undefined;
  #queue: Query[] = [];
  #active: Query | undefined;
  #isEnding = false;
  #isEnded = false;
  processID: number | undefined;
  readyForQuery = false;
  _txStatus: TransactionStatus | null = null;

  constructor({ simulated }: SimulatedPgOptions) {
    super();
    this.#given = simulated;
    this.connection = new SimulatedConnection(() => this.#over('Connection terminated'));
  }

  get isUsable(): boolean {
    return !this.#isEnding && !this.#isEnded;
  }

  connect(): Promise<void> {
    const { link, process, server, sessions } = this.#given;
    return new Promise((resolve, reject) => {
      const fail = (error: Error): void => reject(error);
      this.once('failed', fail);
      const stream = link.openStream(() => this.#over('Connection terminated unexpectedly'));
      this.#stream = stream;
      const limit = process.setTimeout(() => this.#over('timeout expired'), CONNECT_MS);
      stream.send(
        () => 'connect',
        () => {
          const session = server.open((channel, payload) => {
            stream.push(
              'lostPushes',
              () => `notification ${payload}`,
              () => {
                if (!this.#isEnded) this.emit('notification', { channel, payload });
              },
            );
          });
          this.#session = session;
          sessions.add(session);
          stream.push(
            'lostReplies',
            () => 'connected',
            () => {
              if (this.#isEnded) return;
              this.removeListener('failed', fail);
              limit.cancel();
              this.processID = session.pid;
              this.#isReady('I');
              resolve();
            },
          );
        },
      );
    });
  }

  query(query: Submittable | QueryConfig | string, callback?: Callback): Promise<Row[]> | void {
    if (typeof query === 'string') return this.#promised({ text: query });
    const isSubmittable = 'submit' in query;
    const made = isSubmittable ? this.#submitted(query) : ofConfig(query, callback ?? (() => {}));
    if (this.isUsable) {
      this.#queue.push(made);
      this.#sendNext();
    } else queueMicrotask(() => made.failed(new Error('Client was closed and is not queryable')));
  }

  async end(): Promise<void> {
    this.#isEnding = true;
    if (this.#isEnded) return;
    await new Promise<void>((resolve) => {
      this.once('end', resolve);
      this.#over('Connection terminated');
    });
  }

  #promised(config: QueryConfig): Promise<Row[]> {
    return new Promise((resolve, reject) => {
      void this.query(config, (error, result) => {
        if (error) reject(error);
        else resolve(result?.rows ?? []);
      });
    });
  }

  #submitted(query: Submittable): Query {
    // It writes its messages when its turn comes; here it is asked for them at once, which shows no difference.
    query.submit(this.connection);
    const { name, values } = this.connection.bound;
    const text = this.connection.parsedStatements[name] ?? '';
    return {
      statement: { text, values, names: namesIn(values) },
      failed: (error) => query.handleError(error),
      completed: ({ rows, tag }) => {
        for (const fields of rows) query.handleDataRow({ fields });
        query.handleCommandComplete({ text: tag });
        query.handleReadyForQuery();
      },
    };
  }

  #sendNext(): void {
    if (!this.readyForQuery || this.#active !== undefined) return;
    const query = this.#queue.shift();
    if (query === undefined) return;
    this.#active = query;
    this.readyForQuery = false;
    const { server, link } = this.#given;
    link.unansweredOnStreams += 1;
    const what = describe(query.statement);
    this.#stream?.send(what, () => {
      if (this.#session === undefined) return;
      server.execute(this.#session, query.statement, (result, status) => {
        this.#stream?.push(
          'lostReplies',
          () =>
            result instanceof Error
              ? `${result.code} ${result.message}`
              : (result.rows[0]?.join(' ') ?? result.tag),
          () => this.#answered(query, result, status),
        );
      });
    });
  }

  #answered(query: Query, result: Outcome | PostgresError, status: TransactionStatus): void {
    if (this.#isEnded || this.#active !== query) return;
    this.#given.link.unansweredOnStreams -= 1;
    if (result instanceof PostgresError) {
      // `pg` ends the query at its error, and is ready for another one behind it.
      this.#active = undefined;
      query.failed(result);
      if (!this.#isEnded) this.#isReady(status);
      return;
    }
    this.#active = undefined;
    this.#isReady(status, () => query.completed(result));
  }

  /** The listeners of the connection that were added before hear of it ahead of the query. */
  #isReady(status: TransactionStatus, then: () => void = () => {}): void {
    this._txStatus = status;
    this.connection.emit('readyForQuery', { status });
    this.readyForQuery = true;
    then();
    this.#sendNext();
  }

  /** Over, for this process; the server learns of it behind what is still on its way. */
  #over(why: string): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.readyForQuery = false;
    const isExpected = this.#isEnding || why === 'Connection terminated';
    this.#stream?.send(
      () => 'terminate',
      () => {
        if (this.#session !== undefined) this.#given.server.end(this.#session);
        this.#stream?.close();
      },
    );
    const error = new Error(why);
    const unanswered = [...(this.#active === undefined ? [] : [this.#active]), ...this.#queue];
    if (this.#active !== undefined) this.#given.link.unansweredOnStreams -= 1;
    this.#active = undefined;
    this.#queue = [];
    queueMicrotask(() => {
      for (const query of unanswered) query.failed(error);
      const isConnecting = this.processID === undefined;
      this.emit('failed', error);
      if (!isExpected && !isConnecting) this.#tell(error);
      this.emit('end');
    });
  }

  #tell(error: Error): void {
    const { world, name } = this.#given.process;
    if (this.listenerCount('error') > 0) this.emit('error', error);
    else world.violated('§13.1', `${name} ends: nobody listens to an error of a connection`);
  }
}

interface QueryConfig {
  readonly text: string;
  readonly values?: readonly Value[];
}

const CONNECT_MS = 5_000;

function ofConfig({ text, values = [] }: QueryConfig, callback: Callback): Query {
  const sent = values.map(sqlValue);
  return {
    statement: { text, values: sent, names: namesIn(sent) },
    failed: (error) => callback(error),
    completed: ({ rows, tag }) =>
      callback(null, { rows: [...rows], rowCount: Number(tag.split(' ').at(-1)) || 0 }),
  };
}

/** `pg` sends bytes as they are; the server takes them in its own notation too. */
function sqlValue(value: Value): SqlValue {
  if (value === null || value === undefined) return null;
  if (value instanceof Buffer) return `\\x${value.toString('hex')}`;
  if (!Array.isArray(value)) return String(value as string);
  return `{${(value as readonly Value[]).map((element) => quoted(sqlValue(element))).join(',')}}`;
}

function quoted(text: SqlValue): string {
  return text === null ? 'NULL' : `"${text.replace(/["\\]/g, String.raw`\$&`)}"`;
}

/** The bytes of names in parameters, as hexadecimal digits. */
function namesIn(values: readonly SqlValue[]): string[] {
  return values.flatMap((value) =>
    [...(value ?? '').matchAll(/\\x([\da-f]+)/g)].map(([, digits = '']) => digits),
  );
}

function describe({ text, values, names }: SentStatement): () => string {
  return () => {
    const [, call] = /\.(\w+)\(/.exec(text.replaceAll('pg_catalog.', '')) ?? [];
    const resources = names.map((digits) => Buffer.from(digits, 'hex').toString()).join(', ');
    return text.startsWith('SELECT "locks"')
      ? `${call} ${resources}`
      : `${text.split('\n', 1)[0]} ${resources || (values[0] ?? '')}`;
  };
}
