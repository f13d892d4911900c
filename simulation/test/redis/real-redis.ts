import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import {
  encodeCommand,
  FrameReader,
  RedisReplyError,
  type RedisServer,
  type RespValue,
} from '@locks/test-servers';
import { commandsFor, type KeyState } from './key-state.ts';

/** The server's time as a script sees it: kept beside the keys that are compared. */
const CLOCK = '%clock';

/**
 * Stands before a script: `TIME` gives the time that the test has set. The clock of a real server cannot be set, and all
 * else that scripts ask of time is how long keys last, which the test sets before each step.
 */
const SET_CLOCK =
  `local redis=(function(real) return {pcall=real.pcall,call=function(name,...)` +
  ` if name=='TIME' then local t=real.call('GET','${CLOCK}')` +
  ` return {string.sub(t,1,-7),string.format('%.0f',string.sub(t,-6))} end` +
  ` return real.call(name,...) end} end)(redis) `;

/** Reads every key: its name, type, ttl and value. */
const DUMP = `
local found = {}
local read = { string = { 'GET' }, hash = { 'HGETALL' }, zset = { 'ZRANGE', 0, -1, 'WITHSCORES' } }
for _, key in ipairs(redis.call('KEYS', '*')) do
  local kind = redis.call('TYPE', key).ok
  local command = read[kind]
  local value = redis.call(command[1], key, unpack(command, 2))
  found[#found + 1] = { key, kind, redis.call('PTTL', key), type(value) == 'table' and value or { value } }
end
return found`;

const MAX_REPETITIONS = 1000;

/** What a step did. */
export interface Outcome {
  readonly reply: unknown;
  readonly states: readonly KeyState[];
  readonly messages: readonly string[];
}

class Connection {
  readonly #socket: Socket;
  readonly #reader = new FrameReader();
  readonly #waiting: ((value: RespValue) => void)[] = [];
  /** Takes what was not asked for. */
  onMessage: (value: RespValue) => void = () => undefined;

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.on('data', (chunk: Buffer) => {
      for (const { value } of this.#reader.push(chunk)) (this.#waiting.shift() ?? this.onMessage)(value);
    });
  }

  static async open({ host, port }: RedisServer): Promise<Connection> {
    const socket = connect({ host, port, noDelay: true });
    await once(socket, 'connect');
    return new Connection(socket);
  }

  async send(commands: readonly (readonly string[])[]): Promise<readonly RespValue[]> {
    const replies = commands.map(() => new Promise<RespValue>((resolve) => this.#waiting.push(resolve)));
    this.#socket.write(commands.map(encodeCommand).join(''));
    return await Promise.all(replies);
  }

  close(): void {
    this.#socket.destroy();
  }
}

/** One database of a real server, in which single commands run at times that the test sets. */
export class RealRedis {
  /** Steps that were done again since a millisecond of real time began within them. */
  repeated = 0;
  readonly #connection: Connection;
  readonly #subscriber: Connection;
  readonly #mark: string;
  readonly #sha1s = new Map<string, string>();
  readonly #dump: string;
  #messages: string[] = [];
  #marks = 0;
  #awaited: { readonly mark: number; readonly done: () => void } | undefined;

  private constructor(connection: Connection, subscriber: Connection, mark: string, dump: string) {
    this.#connection = connection;
    this.#subscriber = subscriber;
    this.#mark = mark;
    this.#dump = dump;
    subscriber.onMessage = (value) => this.#onMessage(value as RespValue[]);
  }

  /** `channels`: those that somebody listens to. */
  static async open(server: RedisServer, database: number, channels: readonly string[]): Promise<RealRedis> {
    const connection = await Connection.open(server);
    const subscriber = await Connection.open(server);
    const [, dump] = await connection.send([
      ['SELECT', String(database)],
      ['SCRIPT', 'LOAD', DUMP],
    ]);
    const mark = `mark:${database}`;
    for (const channel of [...channels, mark]) await subscriber.send([['SUBSCRIBE', channel]]);
    return new RealRedis(connection, subscriber, mark, String(dump));
  }

  async load(source: string): Promise<string> {
    let sha1 = this.#sha1s.get(source);
    if (sha1 === undefined) {
      const [reply] = await this.#connection.send([['SCRIPT', 'LOAD', SET_CLOCK + source]]);
      if (reply instanceof Error) throw reply;
      sha1 = String(reply);
      this.#sha1s.set(source, sha1);
    }
    return sha1;
  }

  /** Runs one command on a keyspace at a time, within one millisecond of the real server: so all ttls are exact. */
  async run(states: readonly KeyState[], micros: number, command: readonly string[]): Promise<Outcome> {
    for (let attempt = 0; attempt < MAX_REPETITIONS; attempt++) {
      const outcome = await this.#runOnce(states, micros, command);
      if (outcome !== undefined) return outcome;
      this.repeated += 1;
    }
    throw new Error('the server never did a step within one millisecond');
  }

  async #runOnce(
    states: readonly KeyState[],
    micros: number,
    command: readonly string[],
  ): Promise<Outcome | undefined> {
    const before = [['TIME'], ['FLUSHDB'], ...commandsFor(states), ['SET', CLOCK, String(micros)]];
    const mark = ++this.#marks;
    this.#messages = [];
    const marked = new Promise<void>((done) => (this.#awaited = { mark, done }));
    const replies = await this.#connection.send([
      ['MULTI'],
      ...before,
      [...command],
      ['EVALSHA', this.#dump, '0'],
      ['TIME'],
      ['PUBLISH', this.#mark, String(mark)],
      ['EXEC'],
    ]);
    const executed = replies.at(-1);
    if (!Array.isArray(executed)) throw new Error(`EXEC: ${String(executed)}`);
    await marked;
    const [from, to] = [executed[0], executed[before.length + 2]].map(millisecondOf);
    if (from !== to) return undefined;
    for (const reply of executed.slice(0, before.length)) if (reply instanceof Error) throw reply;
    return {
      reply: executed[before.length],
      states: readDump(executed[before.length + 1] as RespValue[][]),
      messages: this.#messages,
    };
  }

  close(): void {
    this.#connection.close();
    this.#subscriber.close();
  }

  #onMessage([kind, channel, text]: readonly RespValue[]): void {
    if (kind !== 'message') return;
    if (channel !== this.#mark) this.#messages.push(`${String(channel)} ${String(text)}`);
    else if (this.#awaited?.mark === Number(text)) this.#awaited.done();
  }
}

function millisecondOf(time: RespValue | undefined): number {
  const [seconds, micros] = (time ?? []) as RespValue[];
  return Number(seconds) * 1000 + Math.floor(Number(micros) / 1000);
}

function readDump(found: readonly RespValue[][]): readonly KeyState[] {
  if ((found as unknown) instanceof RedisReplyError) throw new Error(String(found));
  return found
    .map(([key, type, left, value]) => ({
      key: String(key),
      type: String(type),
      value: (value as RespValue[]).map(String),
      left: Number(left),
    }))
    .filter(({ key }) => key !== CLOCK)
    .sort((a, b) => (a.key < b.key ? -1 : 1));
}
