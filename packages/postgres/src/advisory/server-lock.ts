import { halvesOf } from './advisory-key.ts';
import type { ServerMode } from './run.ts';
import type { Session, Statement } from './session.ts';
import type { TokenSequence } from './token-sequence.ts';

/** Whoever is granted after a wait has this long to say that it lives, or is passed over. */
const CLAIM_MS = 2_000;

const IS_THIS_LOCK = `locktype = 'advisory' AND objsubid = 1 AND classid = $1::oid AND objid = $2::oid
  AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`;

/** The statements that take, weaken and give back one lock of one session. */
export class ServerLock {
  readonly key: string;
  readonly #claimMs: number;
  readonly #timeoutMs: number;
  readonly #tokens: TokenSequence | undefined;

  constructor(key: string, timeoutMs: number, tokens: TokenSequence | undefined) {
    this.key = key;
    this.#timeoutMs = timeoutMs;
    this.#claimMs = Math.min(CLAIM_MS, timeoutMs);
    this.#tokens = tokens;
  }

  /** The token, `null` where there are none; `undefined`: somebody holds, or waits before us. */
  async try(session: Session, mode: ServerMode): Promise<string | null | undefined> {
    const locking = `pg_try_advisory_lock${suffix(mode)}($1::int8)`;
    const minting =
      this.#tokens === undefined ? 'NULL' : `CASE WHEN taken THEN ${this.#tokens.expression} END`;
    const statement: Statement = {
      name: `locks-try-${mode}`,
      text:
        this.#tokens === undefined
          ? `SELECT ${locking}`
          : `SELECT taken, ${minting} FROM (SELECT ${locking} AS taken OFFSET 0) AS attempt`,
      values: [this.key],
    };
    try {
      const [taken, token = null] = (await session.ask(statement))[0] ?? [];
      return taken === 't' ? token : undefined;
    } catch (error) {
      await this.giveBackIfHeld(session, mode);
      throw error;
    }
  }

  /** Stands in the server's queue until granted. Until {@link confirm} the server waits for a sign of life, not for long. */
  async wait(session: Session, mode: ServerMode): Promise<void> {
    session.blocked = true;
    try {
      await session.ask(
        {
          text: `SELECT set_config('idle_session_timeout', '${this.#claimMs}', false), pg_advisory_lock${suffix(mode)}($1::int8)`,
          values: [this.key],
        },
        true,
      );
    } finally {
      session.blocked = false;
    }
  }

  /** Proves to the server that somebody is there to use the grant, and gives its token. */
  async confirm(session: Session): Promise<string | null> {
    const [, token = null] =
      (
        await session.ask({
          text: `SELECT set_config('idle_session_timeout', '${this.#timeoutMs}', false), ${this.#tokens?.expression ?? 'NULL'}`,
        })
      )[0] ?? [];
    return token;
  }

  /** A token for the next holder of a lock that stays where it is. */
  async nextToken(session: Session): Promise<string | null> {
    if (this.#tokens === undefined) {
      await session.fresh();
      return null;
    }
    return (await session.ask({ text: `SELECT ${this.#tokens.expression}` }))[0]?.[0] ?? null;
  }

  /** Whether the session had it. */
  async unlock(session: Session, mode: ServerMode): Promise<boolean> {
    const [[unlocked] = []] = await session.ask({
      name: `locks-unlock-${mode}`,
      text: `SELECT pg_advisory_unlock${suffix(mode)}($1::int8)`,
      values: [this.key],
    });
    return unlocked === 't';
  }

  /** From exclusive to shared without a moment in which it is free: first the second lock, then away with the first. */
  async weaken(session: Session): Promise<void> {
    await session.ask({
      text: 'SELECT pg_advisory_lock_shared($1::int8), pg_advisory_unlock($1::int8)',
      values: [this.key],
    });
  }

  /** A statement that failed, or was cancelled, may have locked all the same: nobody would know of it. */
  async giveBackIfHeld(session: Session, mode: ServerMode): Promise<void> {
    if (!session.alive) return;
    // Asked first, because the server's log gets a warning for every unlock of what is not locked.
    const asked = session.ask({
      text: `SELECT pg_advisory_unlock${suffix(mode)}($3::int8) FROM pg_locks
             WHERE ${IS_THIS_LOCK} AND granted AND pid = pg_backend_pid() AND mode = $4`,
      values: [...halvesOf(this.key), this.key, mode === 'shared' ? 'ShareLock' : 'ExclusiveLock'],
    });
    // Needs no memory, where the server has none left to ask with.
    await asked.catch(() => this.unlock(session, mode));
  }

  /** Ends the wait of that session, if it still waits for this lock, and nothing else. */
  async cancel(asker: Session, waiter: Session): Promise<void> {
    await asker.ask({
      text: `SELECT pg_cancel_backend(pid) FROM pg_locks WHERE ${IS_THIS_LOCK} AND NOT granted AND pid = $3`,
      values: [...halvesOf(this.key), waiter.pid],
    });
  }

  /** Whether a wait of that session is in the server's queue: from here on its place is fixed. */
  async isQueued(asker: Session, waiter: Session): Promise<boolean> {
    const [[event] = []] = await asker.ask({
      name: 'locks-is-queued',
      text: 'SELECT wait_event_type FROM pg_stat_get_activity($1::int4)',
      values: [waiter.pid],
    });
    return event === 'Lock';
  }

  /** Whether somebody waits behind that session, or, if it does not wait, at all. */
  async isWaitedFor(asker: Session, last: Session): Promise<boolean> {
    const [[waitedFor] = []] = await asker.ask({
      name: 'locks-is-waited-for',
      // Who has just come has no time yet: it counts as behind.
      text: `WITH queue AS MATERIALIZED (
               SELECT pid, waitstart FROM pg_locks WHERE ${IS_THIS_LOCK} AND NOT granted)
             SELECT EXISTS (SELECT FROM queue WHERE pid <> $3
               AND coalesce(waitstart > (SELECT waitstart FROM queue WHERE pid = $3), true))`,
      values: [...halvesOf(this.key), last.pid],
    });
    return waitedFor === 't';
  }
}

function suffix(mode: ServerMode): string {
  return mode === 'shared' ? '_shared' : '';
}
