import { randomBytes } from 'node:crypto';
import type { Call, Holder, LockMode, ResourceState, Waiter } from '@locks/core/backend';
import { halvesOf } from './advisory-key.ts';
import type { ResourceQueue } from './resource-queue.ts';
import type { Row, Session } from './session.ts';
import type { Sessions } from './sessions.ts';

/** Everybody who holds or waits hears questions here. */
const QUESTIONS = 'locks_advisory';
/** A process that does not answer in this time is shown by its pid alone. */
const ANSWER_MS = 400;
/** NOTIFY takes 8 000 bytes. */
const PAYLOAD_BYTES = 7_000;

interface Question {
  readonly ask: string;
  readonly to: string;
  readonly key: string;
  /** Ends these acquisitions. */
  readonly end?: readonly string[];
}

/** One holder or waiter as its own process sees it. */
interface Seen {
  /** Of the session that holds or waits for it; 0: it has no place in the server's queue. */
  readonly pid: number;
  readonly id: string;
  readonly mode: LockMode;
  readonly label?: string | undefined;
  readonly token?: string | undefined;
  readonly forMs: number;
  readonly holds: boolean;
}

interface Answer {
  readonly ask: string;
  readonly pids: readonly number[];
  readonly seen: readonly Seen[];
}

/** What this process can say and do of its own. */
export interface ThisProcess {
  queueOf(key: string): ResourceQueue | undefined;
  forceRelease(key: string, acquisitionIds: readonly string[]): Promise<void>;
}

interface Pending {
  readonly missing: Set<number>;
  readonly seen: Seen[];
  done(): void;
}

/**
 * Who holds and who waits, over all processes. PostgreSQL knows sessions and keys; names, labels and the order inside a
 * process are asked of the processes themselves, over NOTIFY.
 */
export class Survey {
  readonly #channel = `locks_advisory_${randomBytes(12).toString('hex')}`;
  readonly #pending = new Map<string, Pending>();
  readonly #process: ThisProcess;
  #asked = 0;

  constructor(process: ThisProcess) {
    this.#process = process;
  }

  get channels(): readonly string[] {
    return [QUESTIONS, this.#channel];
  }

  /** Also ends the acquisitions `end`, where they hold. */
  async look(
    sessions: Sessions,
    resource: string,
    key: string,
    call: Call,
    end: readonly string[] = [],
  ): Promise<ResourceState> {
    for (let rest = end; ; ) {
      const part = firstPart(rest);
      rest = rest.slice(part.length);
      const state = await this.#look(sessions, resource, key, call, part);
      if (rest.length === 0) return state;
    }
  }

  async #look(
    sessions: Sessions,
    resource: string,
    key: string,
    call: Call,
    end: readonly string[],
  ): Promise<ResourceState> {
    const main = await sessions.main();
    const rows = await sessionsOn(main, key);
    if (rows.length === 0) return { resource, holders: [], waiters: [] };
    if (end.length > 0) await this.#process.forceRelease(key, end);
    const own = this.#process.queueOf(key);
    const others = new Set(rows.map(pidOf).filter((pid) => !sessions.isMine(pid)));
    const seen = [
      ...(own === undefined ? [] : seenIn(own)),
      ...(await this.#ask(main, key, others, call, end)),
    ];
    return stateOf(resource, rows, seen, others);
  }

  /** A notification came in on the main session. */
  heard(channel: string, payload: string, sessions: Sessions): void {
    let message: Question | Answer;
    try {
      message = JSON.parse(payload) as Question | Answer;
    } catch {
      // Of another program on our channel.
      return;
    }
    if (channel === this.#channel) this.#answered(message as Answer);
    else this.#answer(message as Question, sessions).catch(() => undefined);
  }

  async #ask(
    main: Session,
    key: string,
    others: Set<number>,
    call: Call,
    end: readonly string[],
  ): Promise<readonly Seen[]> {
    if (others.size === 0) return [];
    const ask = String((this.#asked += 1));
    const seen: Seen[] = [];
    const question: Question = { ask, to: this.#channel, key, ...(end.length > 0 && { end }) };
    const patience = Math.max(5, Math.min(ANSWER_MS, call.deadline - call.now() - 10));
    let timer: NodeJS.Timeout | undefined;
    const answered = new Promise<void>((resolve) => {
      this.#pending.set(ask, { missing: others, seen, done: resolve });
      timer = setTimeout(resolve, patience);
    });
    try {
      await notify(main, QUESTIONS, question);
      await answered;
    } finally {
      clearTimeout(timer);
      this.#pending.delete(ask);
    }
    return seen;
  }

  #answered({ ask, pids, seen }: Answer): void {
    const pending = this.#pending.get(ask);
    if (pending === undefined) return;
    pending.seen.push(...seen);
    for (const pid of pids) pending.missing.delete(pid);
    if (pending.missing.size === 0) pending.done();
  }

  async #answer({ ask, to, key, end = [] }: Question, sessions: Sessions): Promise<void> {
    const queue = this.#process.queueOf(key);
    if (queue === undefined || to === this.#channel) return;
    const runs = [...queue.runs, ...[...queue.leaving].map(({ run }) => run)];
    const pids = runs.flatMap(({ session }) => session?.pid ?? []);
    if (end.length > 0) await this.#process.forceRelease(key, end);
    const main = await sessions.main();
    for (let rest = seenIn(queue); ; ) {
      const part = firstPart(rest);
      rest = rest.slice(part.length);
      // The pids come last: whoever asked then has everything.
      await notify(main, to, { ask, pids: rest.length === 0 ? pids : [], seen: part } satisfies Answer);
      if (rest.length === 0) return;
    }
  }
}

/** What goes into one message. */
function firstPart<T>(all: readonly T[]): readonly T[] {
  let bytes = 0;
  // With its comma.
  const end = all.findIndex((one) => (bytes += Buffer.byteLength(JSON.stringify(one)) + 1) > PAYLOAD_BYTES);
  return end < 0 ? all : all.slice(0, Math.max(1, end));
}

async function notify(main: Session, channel: string, message: Question | Answer): Promise<void> {
  await main.ask({ text: 'SELECT pg_notify($1, $2)', values: [channel, JSON.stringify(message)] });
}

/** Every session that holds or waits for a key, in the order of the queue. */
async function sessionsOn(main: Session, key: string): Promise<Row[]> {
  return await main.ask({
    text: `SELECT pid, granted, mode, application_name
           FROM pg_locks LEFT JOIN pg_stat_activity AS activity USING (pid)
           WHERE locktype = 'advisory' AND objsubid = 1 AND classid = $1::oid AND objid = $2::oid
             AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
           ORDER BY granted DESC, waitstart NULLS LAST`,
    values: [...halvesOf(key)],
  });
}

function pidOf(row: Row): number {
  return Number(row[0]);
}

function seenIn(queue: ResourceQueue): Seen[] {
  const now = performance.now();
  const entries = queue.runs.flatMap(({ holders, waiting, placed }) =>
    placed ? [...holders, ...waiting] : [],
  );
  return [...queue.leaving, ...entries].map(({ request, run, mode, grant, grantedAt, arrivedAt }) => ({
    pid: run.session?.pid ?? 0,
    id: request.acquisitionId,
    mode,
    label: request.label,
    token: grant?.fencingToken?.toString(),
    forMs: Math.round(now - (grant === undefined ? arrivedAt : grantedAt)),
    holds: grant !== undefined,
  }));
}

function stateOf(
  resource: string,
  rows: readonly Row[],
  seen: readonly Seen[],
  silent: ReadonlySet<number>,
): ResourceState {
  const places = new Map(rows.map((row, place) => [pidOf(row), place] as const));
  const granted = new Set(rows.filter((row) => row[1] === 't').map(pidOf));
  const placeOf = ({ pid }: Seen): number => places.get(pid) ?? rows.length;
  const known = seen.filter(({ pid }) => pid === 0 || places.has(pid));
  known.sort((a, b) => placeOf(a) - placeOf(b) || (a.pid === b.pid ? 0 : b.forMs - a.forMs));
  return {
    resource,
    holders: [
      ...known.filter(({ holds }) => holds).map(asHolder),
      ...rows.filter((row) => granted.has(pidOf(row)) && silent.has(pidOf(row))).map(asStranger),
    ],
    waiters: known.filter(({ holds }) => !holds).map(asWaiter),
  };
}

function asHolder({ id, mode, label, token, forMs }: Seen): Holder {
  return {
    acquisitionId: id,
    mode,
    heldForMs: forMs,
    ...(label === undefined ? undefined : { label }),
    ...(token === undefined ? undefined : { fencingToken: BigInt(token) }),
  };
}

/** A session that does not answer: another program, a transaction of `acquireInTransaction`, a process that stands still. */
function asStranger([pid, , mode, application]: Row): Holder {
  return {
    acquisitionId: `pid-${pid}`,
    mode: { kind: mode === 'ShareLock' ? 'shared' : 'exclusive' },
    label: `${application || 'a session'} (PostgreSQL pid ${pid}, which does not answer)`,
  };
}

function asWaiter({ id, mode, label, forMs }: Seen): Waiter {
  return {
    acquisitionId: id,
    mode,
    waitingForMs: forMs,
    ...(label === undefined ? undefined : { label }),
  };
}
