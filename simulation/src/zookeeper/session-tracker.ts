import type { SeededRandom } from '../kernel/seeded-random.ts';
import type { World } from '../kernel/world.ts';

interface TrackedSession {
  readonly timeoutMs: number;
  /** By the leader's clock. */
  endsAt: number;
  /** The server that it is connected to, whose requests alone count; `undefined`: any. */
  server: object | undefined;
  isEnding: boolean;
}

export interface SessionTrackerOptions {
  readonly random: SeededRandom;
  /** How much faster than true time the leader's clock runs. */
  readonly drift: number;
  readonly tickMs: number;
  /** True time until which the leader does nothing. */
  readonly idleUntil: () => number;
  /** A session has been silent for its timeout. */
  readonly expired: (session: number) => void;
}

/** The sessions as a leader counts their time: in ticks, each from the last word about it. */
export class SessionTracker {
  readonly #world: World;
  readonly #options: SessionTrackerOptions;
  readonly #sessions = new Map<number, TrackedSession>();
  #isOver = false;

  /** @param sessions - their timeouts: a new leader gives each of them its whole time */
  constructor(world: World, options: SessionTrackerOptions, sessions: ReadonlyMap<number, number>) {
    this.#world = world;
    this.#options = options;
    for (const [session, timeoutMs] of sessions) this.add(session, timeoutMs, undefined);
  }

  add(session: number, timeoutMs: number, server: object | undefined): void {
    const tracked: TrackedSession = { timeoutMs, endsAt: 0, server, isEnding: false };
    this.#sessions.set(session, tracked);
    this.touch(session);
    this.#expireAt(session, tracked);
  }

  /** The client has shown a sign of life; `false`: it has no session any more. */
  touch(session: number): boolean {
    const tracked = this.#sessions.get(session);
    if (tracked === undefined || tracked.isEnding) return false;
    const { tickMs } = this.#options;
    const end = this.#now + tracked.timeoutMs;
    tracked.endsAt = Math.max(tracked.endsAt, (Math.floor(end / tickMs) + 1) * tickMs);
    return true;
  }

  /** A client has come back by this server. Returns the timeout of its session; `undefined`: that has ended. */
  moves(session: number, server: object): number | undefined {
    const tracked = this.#sessions.get(session);
    if (tracked === undefined || !this.touch(session)) return undefined;
    tracked.server = server;
    return tracked.timeoutMs;
  }

  /** Why a write of a session by a server is refused: the number of the error. */
  refusalOf(session: number, server: object): number | undefined {
    const tracked = this.#sessions.get(session);
    if (tracked === undefined) return UNKNOWN_SESSION;
    if (tracked.isEnding) return SESSION_EXPIRED;
    tracked.server ??= server;
    return tracked.server === server ? undefined : SESSION_MOVED;
  }

  ends(session: number): void {
    const tracked = this.#sessions.get(session);
    if (tracked !== undefined) tracked.isEnding = true;
  }

  ended(session: number): void {
    this.#sessions.delete(session);
  }

  /** There is another leader. */
  stop(): void {
    this.#isOver = true;
  }

  get #now(): number {
    return this.#world.now * (1 + this.#options.drift);
  }

  #expireAt(session: number, tracked: TrackedSession): void {
    const { drift, idleUntil, expired, random } = this.#options;
    const endsAt = tracked.endsAt / (1 + drift);
    // After a standstill the leader ends sessions before it reads what has come meanwhile, or behind that.
    const idle = idleUntil();
    const at = endsAt < idle && random.chance(0.5) ? idle + 1 : Math.max(endsAt, idle);
    this.#world.schedule(at, () => {
      if (this.#isOver || this.#sessions.get(session) !== tracked || tracked.isEnding) return;
      if (this.#world.now < idleUntil() || this.#now < tracked.endsAt - ROUNDING_MS)
        return this.#expireAt(session, tracked);
      tracked.isEnding = true;
      expired(session);
    });
  }
}

/** Of times that are divided by the drift of a clock, and multiplied again. */
const ROUNDING_MS = 0.001;
const UNKNOWN_SESSION = -12;
const SESSION_EXPIRED = -112;
const SESSION_MOVED = -118;
