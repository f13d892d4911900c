import { randomBytes } from 'node:crypto';
import {
  type Call,
  type Holder,
  type LockMode,
  type ResourceState,
  type Waiter,
  withTimeLimit,
} from '@locks/core/backend';
import type { TextRow } from '../pool/text-query.ts';
import type { AdvisorySession } from './advisory-session.ts';
import type { AdvisorySessions } from './advisory-sessions.ts';
import { halvesOf, IS_THIS_LOCK } from './pg-locks.ts';
import type { ResourceQueue } from './resource-queue.ts';

/** The channel of questions. Every process with a main session listens on it. */
const QUESTIONS = 'locks_advisory';
/** How long the processes may take to answer. A session that does not is shown by its pid alone. */
const ANSWER_MS = 400;
/** NOTIFY takes 8 000 bytes. */
const PAYLOAD_BYTES = 7_000;

interface PeerQuestion {
  readonly ask: string;
  /** The channel for the answers. */
  readonly to: string;
  readonly key: string;
  /** The acquisitions whose holds shall end. */
  readonly end?: readonly string[];
}

/** A holder or waiter, as its own process reports it. */
interface ReportedAcquisition {
  /** Of the session that holds or waits for it; 0: it waits without a session. */
  readonly pid: number;
  readonly id: string;
  readonly mode: LockMode;
  readonly label?: string | undefined;
  readonly token?: string | undefined;
  readonly forMs: number;
  readonly holds: boolean;
}

interface PeerAnswer {
  readonly ask: string;
  readonly pids: readonly number[];
  readonly seen: readonly ReportedAcquisition[];
}

/** What this process knows of its own acquisitions. */
export interface ThisProcess {
  queueOf(key: string): ResourceQueue | undefined;
  forceRelease(key: string, acquisitionIds: readonly string[]): Promise<void>;
}

interface PendingQuestion {
  readonly missing: Set<number>;
  readonly seen: ReportedAcquisition[];
  done(): void;
}

/**
 * Asks who holds and who waits, over all processes. PostgreSQL knows sessions and keys; each process reports the names, the
 * labels and the order of its own acquisitions, over NOTIFY.
 */
export class PeerQuery {
  readonly #channel = `locks_advisory_${randomBytes(12).toString('hex')}`;
  readonly #pending = new Map<string, PendingQuestion>();
  readonly #process: ThisProcess;
  #asked = 0;

  constructor(process: ThisProcess) {
    this.#process = process;
  }

  get channels(): readonly string[] {
    return [QUESTIONS, this.#channel];
  }

  /** The state of a resource, after the holds of the acquisitions `end` were ended. */
  async inspect(
    sessions: AdvisorySessions,
    resource: string,
    key: string,
    call: Call,
    end: readonly string[] = [],
  ): Promise<ResourceState> {
    for (let rest = end; ; ) {
      const part = firstPart(rest);
      rest = rest.slice(part.length);
      const state = await this.#inspect(sessions, resource, key, call, part);
      if (rest.length === 0) return state;
    }
  }

  async #inspect(
    sessions: AdvisorySessions,
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
      ...(own === undefined ? [] : acquisitionsIn(own)),
      ...(await this.#ask(main, key, others, call, end)),
    ];
    return stateOf(resource, rows, seen, others);
  }

  /** Handles a notification that came to the main session. */
  received(channel: string, payload: string, sessions: AdvisorySessions): void {
    let message: PeerQuestion | PeerAnswer;
    try {
      message = JSON.parse(payload) as PeerQuestion | PeerAnswer;
    } catch {
      // Another program uses our channel.
      return;
    }
    if (channel === this.#channel) this.#answered(message as PeerAnswer);
    else this.#answer(message as PeerQuestion, sessions).catch(() => undefined);
  }

  async #ask(
    main: AdvisorySession,
    key: string,
    others: Set<number>,
    call: Call,
    end: readonly string[],
  ): Promise<readonly ReportedAcquisition[]> {
    if (others.size === 0) return [];
    const ask = String((this.#asked += 1));
    const seen: ReportedAcquisition[] = [];
    const question: PeerQuestion = { ask, to: this.#channel, key, ...(end.length > 0 && { end }) };
    const answerMs = Math.max(5, Math.min(ANSWER_MS, call.deadline - call.now() - 10));
    const answered = new Promise<void>((done) => this.#pending.set(ask, { missing: others, seen, done }));
    const answeredOrLate = withTimeLimit(answered, answerMs, () => undefined);
    try {
      await notify(main, QUESTIONS, question);
      await answeredOrLate;
    } finally {
      this.#pending.delete(ask);
    }
    return seen;
  }

  #answered({ ask, pids, seen }: PeerAnswer): void {
    const pending = this.#pending.get(ask);
    if (pending === undefined) return;
    pending.seen.push(...seen);
    for (const pid of pids) pending.missing.delete(pid);
    if (pending.missing.size === 0) pending.done();
  }

  async #answer({ ask, to, key, end = [] }: PeerQuestion, sessions: AdvisorySessions): Promise<void> {
    const queue = this.#process.queueOf(key);
    if (queue === undefined || to === this.#channel) return;
    const groups = [...queue.groups, ...[...queue.leaving].map(({ group }) => group)];
    const pids = groups.flatMap(({ session }) => session?.pid ?? []);
    if (end.length > 0) await this.#process.forceRelease(key, end);
    const main = await sessions.main();
    for (let rest = acquisitionsIn(queue); ; ) {
      const part = firstPart(rest);
      rest = rest.slice(part.length);
      // The pids come with the last message: they tell the asker that the answer is complete.
      await notify(main, to, { ask, pids: rest.length === 0 ? pids : [], seen: part });
      if (rest.length === 0) return;
    }
  }
}

/** The first elements that fit together into one message. */
function firstPart<T>(all: readonly T[]): readonly T[] {
  let bytes = 0;
  // One byte more for the comma.
  const end = all.findIndex((one) => (bytes += Buffer.byteLength(JSON.stringify(one)) + 1) > PAYLOAD_BYTES);
  return end < 0 ? all : all.slice(0, Math.max(1, end));
}

async function notify(
  main: AdvisorySession,
  channel: string,
  message: PeerQuestion | PeerAnswer,
): Promise<void> {
  await main.ask({
    text: 'SELECT pg_catalog.pg_notify($1::pg_catalog.text, $2::pg_catalog.text)',
    values: [channel, JSON.stringify(message)],
  });
}

/** Every session that holds or waits for a key, in the order of the queue. */
async function sessionsOn(main: AdvisorySession, key: string): Promise<readonly TextRow[]> {
  return await main.ask({
    text: `SELECT lock.pid, granted, mode, application_name FROM pg_catalog.pg_locks AS lock
           LEFT JOIN pg_catalog.pg_stat_activity AS activity ON activity.pid OPERATOR(pg_catalog.=) lock.pid
           WHERE ${IS_THIS_LOCK}
           ORDER BY granted DESC, waitstart NULLS LAST`,
    values: [...halvesOf(key)],
  });
}

function pidOf(row: TextRow): number {
  return Number(row[0]);
}

function acquisitionsIn(queue: ResourceQueue): ReportedAcquisition[] {
  const now = performance.now();
  const acquisitions = queue.groups.flatMap(({ holders, waiting, positioned }) =>
    positioned ? [...holders, ...waiting] : [],
  );
  return [...queue.leaving, ...acquisitions].map(({ request, group, mode, grant, grantedAt, arrivedAt }) => ({
    pid: group.session?.pid ?? 0,
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
  rows: readonly TextRow[],
  seen: readonly ReportedAcquisition[],
  silent: ReadonlySet<number>,
): ResourceState {
  const positions = new Map(rows.map((row, position) => [pidOf(row), position] as const));
  const granted = new Set(rows.filter((row) => row[1] === 't').map(pidOf));
  const positionOf = ({ pid }: ReportedAcquisition): number => positions.get(pid) ?? rows.length;
  const known = seen.filter(({ pid }) => pid === 0 || positions.has(pid));
  known.sort((a, b) => positionOf(a) - positionOf(b) || (a.pid === b.pid ? 0 : b.forMs - a.forMs));
  return {
    resource,
    holders: [
      ...known.filter(({ holds }) => holds).map(toHolder),
      ...rows.filter((row) => granted.has(pidOf(row)) && silent.has(pidOf(row))).map(toSilentHolder),
    ],
    waiters: known.filter(({ holds }) => !holds).map(toWaiter),
  };
}

function toHolder({ id, mode, label, token, forMs }: ReportedAcquisition): Holder {
  return {
    acquisitionId: id,
    mode,
    heldForMs: forMs,
    ...(label === undefined ? undefined : { label }),
    ...(token === undefined ? undefined : { fencingToken: BigInt(token) }),
  };
}

/** A session that does not answer: another program, a transaction of `advisoryLockInTransaction`, or a frozen process. */
function toSilentHolder([pid, , mode, application]: TextRow): Holder {
  return {
    acquisitionId: `pid-${pid}`,
    mode: { kind: mode === 'ShareLock' ? 'shared' : 'exclusive' },
    label: `${application || 'a session'} (PostgreSQL pid ${pid}, which does not answer)`,
  };
}

function toWaiter({ id, mode, label, forMs }: ReportedAcquisition): Waiter {
  return {
    acquisitionId: id,
    mode,
    waitingForMs: forMs,
    ...(label === undefined ? undefined : { label }),
  };
}
