import { halvesOf } from './advisory-key.ts';
import { IS_THIS_LOCK } from './lock-steps.ts';
import type { ServerMode } from './run.ts';
import type { Session } from './session.ts';
import type { TokenSequence } from './token-sequence.ts';

/** Whoever is granted after a wait has this long to say that it lives, or is passed over. */
const CLAIM_MS = 2_000;

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
  async try(session: Session, mode: ServerMode, together = false): Promise<string | null | undefined> {
    try {
      return await session.steps.try(this.key, mode, together);
    } catch (error) {
      await this.giveBackIfHeld(session, mode);
      throw error;
    }
  }

  /** Stands in the server's queue until granted, tells the server that somebody is there to use it, and gives its token. */
  async wait(session: Session, mode: ServerMode): Promise<string | null> {
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
    // At once, for the server waits for it no longer than the claim; and before anybody relies on the grant, which may have
    // reached a process that had stood still since (docs/spec.md §7.7).
    return await this.#confirm(session);
  }

  async #confirm(session: Session): Promise<string | null> {
    const text = `SELECT set_config('idle_session_timeout', '${this.#timeoutMs}', false), ${this.#tokens?.expression ?? 'NULL'}`;
    try {
      const [[, token = null] = []] = await session.ask({ text });
      return token;
    } catch (error) {
      session.end(error);
      throw error;
    }
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
  unlock(session: Session, mode: ServerMode): Promise<boolean> {
    return session.steps.unlock(this.key, mode);
  }

  /** From exclusive to shared without a moment in which it is free: first the second lock, then away with the first. */
  async weaken(session: Session): Promise<void> {
    await session.ask({
      text: 'SELECT pg_advisory_lock_shared($1::int8), pg_advisory_unlock($1::int8)',
      values: [this.key],
    });
  }

  /** After a statement that failed, or was cancelled. */
  giveBackIfHeld(session: Session, mode: ServerMode): Promise<void> {
    return session.steps.giveBackIfHeld(this.key, mode);
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

  /** Whether somebody waits behind that session, or, if it does not wait, at all; and before another, if one is named. */
  async isWaitedFor(asker: Session, last: Session, before?: Session): Promise<boolean> {
    const [[waitedFor] = []] = await asker.ask({
      name: 'locks-is-waited-for',
      // Who has just come has no time yet: it counts as behind the one and before the other.
      text: `WITH queue AS MATERIALIZED (
               SELECT pid, waitstart FROM pg_locks WHERE ${IS_THIS_LOCK} AND NOT granted)
             SELECT EXISTS (SELECT FROM queue WHERE pid <> $3
               AND coalesce(waitstart > (SELECT waitstart FROM queue WHERE pid = $3), true)
               AND coalesce(waitstart < (SELECT waitstart FROM queue WHERE pid = $4), true))`,
      values: [...halvesOf(this.key), last.pid, before?.pid ?? null],
    });
    return waitedFor === 't';
  }
}

function suffix(mode: ServerMode): string {
  return mode === 'shared' ? '_shared' : '';
}
