import { Buffer } from 'node:buffer';
import type { RecordAnswer, RecordCommand } from './record-command.ts';

/** The network between one client and its server, as a simulation decides it. */
export interface SimulatedMysqlNetwork {
  /** Carries a command and its answer: late, never, or only in one direction. */
  request(what: () => string, execute: () => RecordAnswer): Promise<RecordAnswer>;
  execute(command: RecordCommand): RecordAnswer;
  /** Draws a number from 0 to 1. */
  random(): number;
}

type Callback<T> = (error: Error | null, result?: T) => void;

/** What mysql2 puts into an answer to a write: no transaction is open. */
const AUTOCOMMIT = 2;
const NO_ROWS: RecordAnswer = { rows: [] };

/** The callback pool of mysql2, as far as `@locks/mysql` uses it. */
export class SimulatedMysqlPool {
  readonly config: { readonly connectionLimit: number };
  readonly #network: SimulatedMysqlNetwork;
  #idle: SimulatedMysqlConnection[] = [];

  constructor(network: SimulatedMysqlNetwork, connectionLimit: number) {
    this.#network = network;
    this.config = { connectionLimit };
  }

  /** The adapter never asks for more than the limit at once. */
  getConnection(done: Callback<SimulatedMysqlConnection>): void {
    const idle = this.#idle.pop();
    if (idle !== undefined) return queueMicrotask(() => done(null, idle));
    void this.#connect(done);
  }

  async #connect(done: Callback<SimulatedMysqlConnection>): Promise<void> {
    const connected = await settled(
      this.#network.request(
        () => 'connect',
        () => NO_ROWS,
      ),
    );
    if (connected instanceof Error) return done(connected);
    done(null, new SimulatedMysqlConnection(this.#network, (one) => void this.#idle.push(one)));
  }

  /** Only here so that this is taken for a pool. */
  query(): never {
    throw new Error('the adapter uses connections');
  }

  promise(): never {
    throw new Error('the adapter uses callbacks');
  }

  /** All connections end. Of those that lie in the pool mysql2 notices some, and others at their next statement. */
  lose(): void {
    this.#idle = this.#idle.filter(() => this.#network.random() < 0.5);
    for (const connection of this.#idle) connection.isClosed = true;
  }
}

/** One connection, lent to one user at a time. */
export class SimulatedMysqlConnection {
  readonly #network: SimulatedMysqlNetwork;
  readonly #giveBack: (connection: SimulatedMysqlConnection) => void;
  isClosed = false;

  constructor(network: SimulatedMysqlNetwork, giveBack: (connection: SimulatedMysqlConnection) => void) {
    this.#network = network;
    this.#giveBack = giveBack;
  }

  query({ sql }: { readonly sql: string }, done: Callback<unknown>): void {
    if (this.isClosed) {
      const error = new Error("Can't add new command when connection is in closed state");
      return queueMicrotask(() => done(error));
    }
    void this.#send(sql, done);
  }

  async #send(sql: string, done: Callback<unknown>): Promise<void> {
    const { request, execute } = this.#network;
    const command = commandOf(sql);
    const result = await settled(
      request(
        () => inWords(command),
        () => execute(command),
      ),
    );
    if (!(result instanceof Error)) return done(null, answerOf(result));
    // An error of the server leaves the connection as it is; any other ends it.
    this.isClosed ||= !('errno' in result);
    done(result);
  }

  release(): void {
    if (!this.isClosed) this.#giveBack(this);
  }

  destroy(): void {
    this.isClosed = true;
  }
}

/** What a promise gives, or the error with which it fails. */
function settled<T>(promise: Promise<T>): Promise<T | Error> {
  return promise.catch((error: Error) => error);
}

function answerOf(answer: RecordAnswer): unknown {
  if ('rows' in answer) return answer.rows.map((cells) => cells.map((cell) => Buffer.from(String(cell))));
  return { affectedRows: answer.affected, insertId: answer.value, serverStatus: AUTOCOMMIT };
}

/** `RecordStatements` writes every statement but this one, which ends what a statement that failed has left open. */
function commandOf(sql: string): RecordCommand {
  return sql === 'COMMIT' ? { kind: 'nothing' } : (JSON.parse(sql) as RecordCommand);
}

/** A command for a timeline. */
function inWords(command: RecordCommand): string {
  if ('records' in command) return `${command.kind} ${command.records.map(({ name }) => name)}`;
  if ('writes' in command) return `write ${command.writes.map(({ name }) => name)}`;
  return 'names' in command ? `read ${command.names}` : command.kind;
}
