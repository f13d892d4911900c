import { connect as connectTo, type Socket } from 'node:net';
import postgres from 'postgres';
import type { Answered, OwnConnection, Statement, TextRow } from '../driver/postgres-driver.ts';
import { ConnectionEnd } from '../driver/connection-end.ts';
import { asError } from '../driver/server-error.ts';
import { sqlText } from '../driver/sql-text.ts';

/** The most time for a connection to be made, in seconds. */
const CONNECT_S = 5;

/** The options that an instance of postgres.js gives out: those of its application, with all defaults. */
export type ParsedOptions = postgres.Sql['options'];

/** What postgres.js names connections of applications that chose no name. */
const NO_NAME = 'postgres.js';

/** A result: its rows are texts, as no parser is set. A message of several statements has an array of results. */
interface RawResult extends Array<TextRow> {
  readonly count?: number | null;
  readonly state?: { readonly pid: number };
}

/**
 * One connection of postgres.js: an instance with a single connection, which is never made again. The sockets are made here,
 * because an instance has no way to cut a connection that does not answer, or to let the process end beside one that is open.
 */
export class PostgresJsConnection implements OwnConnection {
  processId: number | undefined;
  readonly #sql: postgres.Sql;
  readonly #end = new ConnectionEnd();
  #onNotification: ((channel: string, payload: string) => void) | undefined;
  #socket: Socket | undefined;
  #inFlight = 0;
  #isConnected = false;

  constructor(options: ParsedOptions, name: string) {
    const sockets = new Sockets(options);
    const { connection } = options;
    const own: Partial<ParsedOptions> & Record<string, unknown> = {
      max: 1,
      connect_timeout: Math.min(options.connect_timeout, CONNECT_S),
      idle_timeout: 0,
      max_lifetime: null,
      fetch_types: false,
      debug: false,
      // Values are sent and read as texts, whatever types and transforms the application has.
      types: {},
      serializers: {},
      parsers: {},
      transform: { undefined: null, column: {}, value: {}, row: {} } as ParsedOptions['transform'],
      connection: {
        ...connection,
        application_name: connection.application_name === NO_NAME ? name : connection.application_name,
      },
      parameters: {},
      shared: { retries: 0, typeArrayMap: {} },
      onparameter: undefined,
      onnotice: () => undefined,
      onnotify: (channel: string, payload: string) => this.#onNotification?.(channel, payload),
      onclose: () => this.#end.tell('the connection was closed'),
      // With one host an error of the connection is reported; `sockets` tries all hosts.
      host: [''],
      port: [0],
      socket: async () => {
        const socket = await sockets.next();
        this.#socket = socket;
        if (!this.#end.isOver) return socket;
        // After its end the instance would connect again, in a new session.
        socket.destroy();
        throw new Error('the connection was closed');
      },
    };
    this.#sql = postgres({ ...options, ...own } as unknown as postgres.Options<Record<string, never>>);
  }

  async connect(): Promise<void> {
    const { state } = (await this.#sql.unsafe('SELECT 1').values()) as unknown as RawResult;
    this.#isConnected = true;
    this.processId = state?.pid;
  }

  send({ name, text, values }: Statement, answered: Answered): void {
    this.#inFlight += 1;
    const query =
      values === undefined || values.length === 0
        ? this.#sql.unsafe(text)
        : this.#sql.unsafe(text, values.map(sqlText) as string[], { prepare: name !== undefined });
    (query.values() as unknown as Promise<RawResult>).then(
      (result) => {
        this.#inFlight -= 1;
        const { count } = result;
        answered(
          undefined,
          count === undefined ? { rows: [], count: 0 } : { rows: result, count: count ?? 0 },
        );
      },
      (error: unknown) => {
        this.#inFlight -= 1;
        answered(asError(error));
      },
    );
  }

  onEnd(listener: (why: Error) => void): void {
    this.#end.add(listener);
  }

  onNotification(listener: (channel: string, payload: string) => void): void {
    this.#onNotification = listener;
  }

  setRef(isRef: boolean): void {
    if (isRef) this.#socket?.ref();
    else this.#socket?.unref();
  }

  async end(): Promise<void> {
    // An answer that is waited for may never come.
    if (this.#inFlight > 0 || !this.#isConnected) return this.cut();
    await this.#sql.end().catch(() => undefined);
  }

  cut(): void {
    this.#end.tell('the connection was cut');
    this.#socket?.destroy();
  }
}

/** Connects to the hosts of the options, one after the other, as postgres.js does. */
class Sockets {
  readonly #options: ParsedOptions;
  #at = 0;

  constructor(options: ParsedOptions) {
    this.#options = options;
  }

  /** The socket of the next host that answers. */
  async next(): Promise<Socket> {
    const { host, port, path, socket, target_session_attrs } = this.#options as ParsedOptions & {
      readonly socket?: (options: ParsedOptions) => Socket | Promise<Socket>;
    };
    if (socket !== undefined) return await socket(this.#options);
    if (path) return await connected(connectTo(path));
    // postgres.js asks for another socket where a host accepted and did not serve.
    let failure: unknown = new Error(
      target_session_attrs
        ? `no host is of the kind that target_session_attrs asks for, ${target_session_attrs}, or each closed the connection`
        : 'the connection was closed by the server, or by a balancer or pooler before it, ahead of the first answer',
    );
    while (this.#at < host.length) {
      const at = this.#at;
      this.#at += 1;
      const [name, number] = [host[at] as string, port[at] as number];
      try {
        // postgres.js verifies the certificate of the server by this property.
        return Object.assign(await connected(connectTo(number, name)), { host: name, port: number });
      } catch (error) {
        failure = error;
      }
    }
    throw failure;
  }
}

function connected(socket: Socket): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => fail(new Error('no connection was made in time')), CONNECT_S * 1_000);
    const fail = (error: Error): void => {
      clearTimeout(timer);
      socket.destroy();
      reject(error);
    };
    socket.once('error', fail);
    socket.once('connect', () => {
      clearTimeout(timer);
      socket.removeListener('error', fail);
      resolve(socket);
    });
  });
}
