import type { AdvisorySession } from './advisory-session.ts';
import type { ServerMode } from './lock-steps.ts';
import { halvesOf, IS_THIS_LOCK } from './pg-locks.ts';
import type { TokenSequence } from './token-sequence.ts';

/** The time limit for a session that was granted a lock after a wait to confirm that it lives, before the server ends it. */
const CLAIM_MS = 2_000;

/** The statements that take, weaken and release one lock. */
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

  /**
   * Tries the lock. Returns the token, or `null` without tokens; `undefined`: another session holds the lock or waits for it.
   */
  async try(
    session: AdvisorySession,
    mode: ServerMode,
    together: boolean,
  ): Promise<string | null | undefined> {
    try {
      return await session.steps.try(this.key, mode, together);
    } catch (error) {
      await this.unlockIfHeld(session, mode);
      throw error;
    }
  }

  /** Waits in the server's queue until granted, confirms the grant to the server, and resolves to the token. */
  async wait(session: AdvisorySession, mode: ServerMode): Promise<string | null> {
    session.blocked = true;
    try {
      await session.askWithoutLimit({
        name: `locks-wait-${mode}`,
        text: `SELECT pg_catalog.set_config('idle_session_timeout', '${this.#claimMs}', false),
            pg_catalog.pg_advisory_lock${suffix(mode)}($1::bigint)`,
        values: [this.key],
      });
    } finally {
      session.blocked = false;
    }
    // The grant is confirmed at once, because the server waits no longer than the claim time. Nobody may rely on it before: it
    // may have reached this process long after the server sent it (docs/spec.md §7.7).
    return await this.#confirm(session);
  }

  async #confirm(session: AdvisorySession): Promise<string | null> {
    const text = `SELECT pg_catalog.set_config('idle_session_timeout', '${this.#timeoutMs}', false), ${this.#tokens?.expression ?? 'NULL'}`;
    try {
      const [[, token = null] = []] = await session.ask({ name: 'locks-confirm', text });
      return token;
    } catch (error) {
      session.end(error);
      throw error;
    }
  }

  /** Draws a token for the next holder of a lock that the session keeps. */
  async nextToken(session: AdvisorySession): Promise<string | null> {
    if (this.#tokens === undefined) {
      await session.confirm();
      return null;
    }
    return (await session.ask({ text: `SELECT ${this.#tokens.expression}` }))[0]?.[0] ?? null;
  }

  /** Releases the lock. Resolves to whether the session held it. */
  unlock(session: AdvisorySession, mode: ServerMode): Promise<boolean> {
    return session.steps.unlock(this.key, mode);
  }

  /** Turns an exclusive lock into a shared one, which is taken first, so that the lock is never free. */
  async weaken(session: AdvisorySession): Promise<void> {
    await session.ask({
      text: 'SELECT pg_catalog.pg_advisory_lock_shared($1::bigint), pg_catalog.pg_advisory_unlock($1::bigint)',
      values: [this.key],
    });
  }

  /** Releases a lock that a failed or cancelled statement may have taken all the same. */
  unlockIfHeld(session: AdvisorySession, mode: ServerMode): Promise<void> {
    return session.steps.unlockIfHeld(this.key, mode);
  }

  /** Cancels the wait of a session for this lock, and nothing else of that session. */
  async cancel(asker: AdvisorySession, waiter: AdvisorySession): Promise<void> {
    await asker.ask({
      text: `SELECT pg_catalog.pg_cancel_backend(pid) FROM pg_catalog.pg_locks
             WHERE ${IS_THIS_LOCK} AND NOT granted AND pid OPERATOR(pg_catalog.=) $3::integer`,
      values: [...halvesOf(this.key), waiter.pid],
    });
  }

  /** Returns whether the wait of a session is in the server's queue: from then on its position is fixed. */
  async isQueued(asker: AdvisorySession, waiter: AdvisorySession): Promise<boolean> {
    const [[event] = []] = await asker.ask({
      name: 'locks-is-queued',
      text: 'SELECT wait_event_type FROM pg_catalog.pg_stat_get_activity($1::integer)',
      values: [waiter.pid],
    });
    return event === 'Lock';
  }

  /** Returns whether anybody waits behind the session `last`; if `last` does not wait, whether anybody waits at all. */
  async isWaitedFor(asker: AdvisorySession, last: AdvisorySession): Promise<boolean> {
    const [[waitedFor] = []] = await asker.ask({
      name: 'locks-is-waited-for',
      // A wait that has just begun has no start time yet: it counts as behind `last`.
      text: `WITH queue AS MATERIALIZED (
               SELECT pid, waitstart FROM pg_catalog.pg_locks WHERE ${IS_THIS_LOCK} AND NOT granted)
             SELECT EXISTS (SELECT FROM queue WHERE pid OPERATOR(pg_catalog.<>) $3::integer
               AND coalesce(waitstart OPERATOR(pg_catalog.>) (
                 SELECT waitstart FROM queue WHERE pid OPERATOR(pg_catalog.=) $3::integer), true))`,
      values: [...halvesOf(this.key), last.pid],
    });
    return waitedFor === 't';
  }
}

function suffix(mode: ServerMode): string {
  return mode === 'shared' ? '_shared' : '';
}
