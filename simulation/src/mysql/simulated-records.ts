import type {
  LockRecordRow,
  RecordAnswer,
  RecordCommand,
  RecordWrite,
  WantedRecord,
} from './record-command.ts';

/** An error of the server, as mysql2 gives it: nothing of the statement has happened. */
export class ServerError extends Error {
  override readonly name = 'ServerError';
  readonly errno: number;

  constructor(errno: number, message: string) {
    super(message);
    this.errno = errno;
  }
}

/** One of several resources is not free. */
const OVERFLOW = 1690;
const PACKET_BYTES = 16_777_216;
const SCHEMA_VERSION = 1;
const NOTHING: RecordAnswer = { affected: 0, value: 0 };

/**
 * A store of records with a version each, which are compared and swapped, in virtual time. A step is whole, and steps run one after
 * another: what collides on a real server is sent again there.
 */
export class SimulatedRecords {
  readonly #micros: () => number;
  readonly #records = new Map<string, LockRecordRow>();
  /** When each client was heard of last. */
  readonly #clients = new Map<string, number>();
  /** What takes back each write, for a server that loses its last ones. */
  #undo: { readonly at: number; readonly run: () => void }[] = [];

  /** @param micros - the server's clock: whole microseconds since 1970 */
  constructor(micros: () => number) {
    this.#micros = micros;
  }

  record(name: string): LockRecordRow | undefined {
    return this.#records.get(name);
  }

  isAlive(client: string, withinMicros: number): boolean {
    return (this.#clients.get(client) ?? -Infinity) > this.#micros() - withinMicros;
  }

  /** Throws a `ServerError` where the server refuses the step. */
  execute(command: RecordCommand): RecordAnswer {
    const now = this.#micros();
    switch (command.kind) {
      case 'take': {
        const [record] = command.records;
        if (record === undefined || !this.#isFree(record.name, now)) return NOTHING;
        return { affected: 1, value: this.#take(record, now) };
      }
      case 'take all': {
        const { records } = command;
        if (!records.every(({ name }) => this.#isFree(name, now)))
          throw new ServerError(OVERFLOW, 'BIGINT value is out of range');
        for (const record of records) this.#take(record, now);
        return { affected: records.length, value: 0 };
      }
      case 'write':
        return { affected: command.writes.filter((write) => this.#write(write, now)).length, value: now };
      case 'read':
        return { rows: this.#read(command, now) };
      case 'beat':
        this.#set(this.#clients, command.client, now);
        return { affected: 1, value: 0 };
      case 'leave':
        this.#set(this.#clients, command.client, undefined);
        return { affected: 1, value: 0 };
      case 'version':
        return { rows: [[SCHEMA_VERSION, 1]] };
      case 'nothing':
        return NOTHING;
      default:
        return command satisfies never;
    }
  }

  /** Takes back what was written at the time `since` and later. Returns whether that was anything. */
  loseSince(since: number): boolean {
    const lost = this.#undo.filter(({ at }) => at >= since);
    for (const { run } of lost.toReversed()) run();
    this.#undo = [];
    return lost.length > 0;
  }

  #isFree(name: string, now: number): boolean {
    const record = this.#records.get(name);
    return record === undefined || (record.waiting === 0 && record.freeAt <= now);
  }

  #take({ name, version, span, state }: WantedRecord, now: number): number {
    const token = Math.max((this.#records.get(name)?.token ?? 0) + 1, now);
    this.#set(this.#records, name, { version, token, waiting: 0, freeAt: now + span, at: now, state });
    return token;
  }

  #write(
    { name, version, aliveUntil = Infinity, standsOnRow, freeAt, span, next }: RecordWrite,
    now: number,
  ): boolean {
    const record = this.#records.get(name);
    if (record?.version !== version || now >= aliveUntil) return false;
    if (standsOnRow && now >= record.freeAt) return false;
    const end = span === 0 ? freeAt : Math.max(freeAt, now + span);
    this.#set(this.#records, name, { ...next, freeAt: end, at: now });
    return true;
  }

  /** The server itself, the clients that live, and the records, as `MysqlStatements.snapshot` reads them. */
  #read(command: Extract<RecordCommand, { readonly kind: 'read' }>, now: number): (string | number)[][] {
    const clients = [...this.#clients.keys()].filter((client) => this.isAlive(client, command.aliveMicros));
    const known = new Set(command.known);
    return [
      [0, '', PACKET_BYTES, 0, now, '', 1],
      ...clients.map((client) => [1, client, 0, 0, 0, '', 1]),
      ...command.names.flatMap((name) => {
        const record = this.#records.get(name);
        if (record === undefined) return [];
        const { version, token, at, state } = record;
        return [[2, name, version, token, at, known.has(version) ? '' : state, 1]];
      }),
    ];
  }

  #set<T>(map: Map<string, T>, key: string, value: T | undefined): void {
    const before = map.get(key);
    const put = (one: T | undefined): void => void (one === undefined ? map.delete(key) : map.set(key, one));
    this.#undo.push({ at: this.#micros(), run: () => put(before) });
    put(value);
  }
}
