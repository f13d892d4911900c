import { randomBytes } from 'node:crypto';
import {
  type Call,
  type Holder,
  type LockMode,
  type ResourceState,
  withTimeLimit,
} from '@locks/core/backend';
import type { TextRow } from '../driver/postgres-driver.ts';
import type { AdvisorySession } from './advisory-session.ts';
import type { AdvisorySessions } from './advisory-sessions.ts';
import { halvesOf, IS_THIS_LOCK } from './pg-locks.ts';
import type { ResourceQueue } from './resource-queue.ts';

/** The channel of questions. Every process with a main session listens on it. */
const QUESTIONS = 'locks_advisory';
/** The time limit of the answers. A session that does not answer in time is shown by its pid alone. */
const ANSWER_MS = 400;
/** The most bytes of one message: NOTIFY takes 8 000. */
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
  /** The process id of the session that holds or waits for the acquisition; 0: it waits without a session. */
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
  /** The sessions of which the answer is complete. */
  readonly pids: readonly number[];
  readonly seen: readonly ReportedAcquisition[];
}

/** The knowledge of this process of its own acquisitions. */
export interface ThisProcess {
  sessions(): AdvisorySessions;
  queueOf(key: string): ResourceQueue | undefined;
  forceRelease(key: string, acquisitionIds: readonly string[]): Promise<void>;
}

/**
 * Asks all processes over NOTIFY for their holders and waiters, and to end holds. `pg_stat_activity` cannot tell them: its
 * `application_name` is one short text of a session that has many locks, and setting it costs each acquire a statement.
 */
export class PeerQuery {
  readonly #channel = `locks_advisory_${randomBytes(12).toString('hex')}`;
  readonly channels: readonly string[] = [QUESTIONS, this.#channel];
  readonly #pending = new Map<string, (answer: PeerAnswer) => void>();
  readonly #process: ThisProcess;
  #asked = 0;

  constructor(process: ThisProcess) {
    this.#process = process;
  }

  /** The state of a resource, after the holds of the acquisitions `end` were ended. */
  async inspect(resource: string, key: string, call: Call, end: readonly string[]): Promise<ResourceState> {
    const [part, ...rest] = partsOf(end);
    const sessions = this.#process.sessions();
    const main = await sessions.main();
    const rows = await sessionsOn(main, key);
    if (rows.length === 0) return { name: resource, holders: [], waiters: [] };
    await this.#process.forceRelease(key, part);
    const silent = new Set(rows.map(pidOf).filter((pid) => !sessions.isMine(pid)));
    const own = acquisitionsIn(this.#process.queueOf(key));
    const seen = [...own, ...(await this.#ask(main, key, part, call, silent))];
    if (rest.length > 0) return await this.inspect(resource, key, call, rest.flat());
    return stateOf(resource, rows, seen, silent);
  }

  /** Handles a notification that came to the main session. */
  received(channel: string, payload: string): void {
    let message: PeerQuestion & PeerAnswer;
    try {
      message = JSON.parse(payload) as PeerQuestion & PeerAnswer;
    } catch {
      // Another program uses our channel.
      return;
    }
    if (channel === this.#channel) this.#pending.get(message.ask)?.(message);
    else this.#answer(message).catch(() => undefined);
  }

  /**
   * Returns the reports of the other processes, and removes their sessions from `silent`: those left in it have not answered in
   * time.
   */
  async #ask(
    main: AdvisorySession,
    key: string,
    end: readonly string[],
    call: Call,
    silent: Set<number>,
  ): Promise<readonly ReportedAcquisition[]> {
    const reported: ReportedAcquisition[] = [];
    if (silent.size === 0) return reported;
    const ask = String((this.#asked += 1));
    const question: PeerQuestion = { ask, to: this.#channel, key, ...(end.length > 0 && { end }) };
    const answerMs = Math.max(5, Math.min(ANSWER_MS, call.deadline - call.now() - 10));
    const complete = new Promise<void>((done) => {
      this.#pending.set(ask, ({ pids, seen }) => {
        reported.push(...seen);
        for (const pid of pids) silent.delete(pid);
        if (silent.size === 0) done();
      });
    });
    const completeOrLate = withTimeLimit(complete, answerMs, () => undefined);
    try {
      await notify(main, QUESTIONS, question);
      await completeOrLate;
    } finally {
      this.#pending.delete(ask);
    }
    return reported;
  }

  async #answer({ ask, to, key, end = [] }: PeerQuestion): Promise<void> {
    const queue = this.#process.queueOf(key);
    if (queue === undefined || to === this.#channel) return;
    const groups = [...queue.groups, ...[...queue.leaving].map(({ group }) => group)];
    const pids = groups.flatMap(({ session }) => session?.pid ?? []);
    await this.#process.forceRelease(key, end);
    const main = await this.#process.sessions().main();
    const parts = partsOf(acquisitionsIn(queue));
    for (const [at, seen] of parts.entries())
      await notify(main, to, { ask, pids: at === parts.length - 1 ? pids : [], seen });
  }
}

/** Splits a list into parts that fit into one message each: at least one, which may be empty. */
function partsOf<T>(all: readonly T[]): [T[], ...T[][]] {
  const parts: [T[], ...T[][]] = [[]];
  let [part] = parts;
  let bytes = 0;
  for (const one of all) {
    // The comma takes one byte more.
    const size = Buffer.byteLength(JSON.stringify(one)) + 1;
    if (bytes + size > PAYLOAD_BYTES) {
      part = [];
      parts.push(part);
      bytes = 0;
    }
    part.push(one);
    bytes += size;
  }
  return parts;
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

function acquisitionsIn(queue: ResourceQueue | undefined): readonly ReportedAcquisition[] {
  if (queue === undefined) return [];
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
  // Acquisitions without a session come last.
  positions.set(0, rows.length);
  const positionOf = ({ pid }: ReportedAcquisition): number => positions.get(pid) ?? -1;
  const known = seen.filter((one) => positionOf(one) >= 0);
  known.sort((one, other) => positionOf(one) - positionOf(other));
  const silentHolders = rows.filter((row) => row[1] === 't' && silent.has(pidOf(row)));
  return {
    name: resource,
    holders: [...known.filter(({ holds }) => holds).map(toHolder), ...silentHolders.map(toSilentHolder)],
    waiters: known
      .filter(({ holds }) => !holds)
      .map((one) => ({ ...identityOf(one), waitingForMs: one.forMs })),
  };
}

function identityOf({ id, mode, label }: ReportedAcquisition) {
  return { acquisitionId: id, mode, ...(label === undefined ? undefined : { label }) };
}

function toHolder(one: ReportedAcquisition): Holder {
  const token = one.token === undefined ? undefined : { fencingToken: BigInt(one.token) };
  return { ...identityOf(one), heldForMs: one.forMs, ...token };
}

/** A session that does not answer: another program, a transaction of `advisoryLockInTransaction`, or a frozen process. */
function toSilentHolder([pid, , mode, application]: TextRow): Holder {
  return {
    acquisitionId: `pid-${pid}`,
    mode: { kind: mode === 'ShareLock' ? 'shared' : 'exclusive' },
    label: `${application || 'a session'} (PostgreSQL pid ${pid}, which does not answer)`,
  };
}
