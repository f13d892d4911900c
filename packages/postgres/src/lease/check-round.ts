import type { Answer, Statements } from '../pool/statements.ts';
import type { Listener } from './listener.ts';
import { parseCheck } from './replies.ts';
import type { Waiter, WaitingRoom } from './waiting-room.ts';

/** The store passes over whoever has not been heard of for 3 s. */
const CHECK_MS = 1_000;
/** Where nothing is pushed. */
const POLL_MS = 100;
/** A look that gets no answer is given up after this, over the listener and then over the pool. */
const PATIENCE_MS = 1_000;
/** The soonest look after a look, however soon a hold runs out. */
const SHORTEST_MS = 25;
/** After a hold ran out: many processes need not look in the same moment. */
const AFTER_EXPIRY_MS = 3;
const EXPIRY_JITTER_MS = 10;

/** The look after all waiters of a backend, one statement for all: see migrations/1/30-check.sql. */
export class CheckRound {
  readonly #statements: Statements;
  readonly #listener: Listener | undefined;
  readonly #sql: string;
  readonly #room: WaitingRoom;
  readonly #claims = new Set<Waiter>();
  #everyMs = CHECK_MS;
  #timer: NodeJS.Timeout | undefined;
  #dueAt = Number.POSITIVE_INFINITY;
  #ranAt = Number.NEGATIVE_INFINITY;
  #running = false;
  #again = false;

  constructor(statements: Statements, listener: Listener | undefined, schema: string, room: WaitingRoom) {
    this.#statements = statements;
    this.#listener = listener;
    this.#sql = `SELECT ${schema}.check_waiters($1, $2, $3, $4, $5)`;
    this.#room = room;
  }

  /** From now on nothing is pushed. */
  poll(): void {
    this.#everyMs = POLL_MS;
    if (this.#room.waiters.size > 0) this.run();
  }

  /** Somebody waits, and the hold before it runs out in `expiryMs` if it is not renewed (negative: nobody knows). */
  expect(expiryMs: number): void {
    const now = performance.now();
    const expiry =
      expiryMs < 0 ? this.#everyMs : expiryMs + AFTER_EXPIRY_MS + Math.random() * EXPIRY_JITTER_MS;
    const dueAt = Math.max(now + Math.min(this.#everyMs, expiry), this.#ranAt + SHORTEST_MS);
    if (dueAt >= this.#dueAt) return;
    clearTimeout(this.#timer);
    this.#dueAt = dueAt;
    this.#timer = setTimeout(() => this.run(), dueAt - now);
    // A waiting acquire keeps the process alive by itself.
    this.#timer.unref();
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#dueAt = Number.POSITIVE_INFINITY;
  }

  /** Looks after all of them now, or after the look that is under way. */
  run(): void {
    this.stop();
    if (this.#room.waiters.size === 0) return;
    if (this.#running) {
      this.#again = true;
      return;
    }
    this.#running = true;
    this.#ranAt = performance.now();
    this.#listener?.open();
    void this.#check([...this.#room.waiters.values()], true).then((expiryMs) => {
      this.#running = false;
      const again = this.#again;
      this.#again = false;
      if (again) this.run();
      else if (this.#room.waiters.size > 0) this.expect(expiryMs);
    });
  }

  /** Asks for what a hand-over has become that was told too late to be relied on. */
  claim(waiter: Waiter): void {
    this.#claims.add(waiter);
    if (this.#claims.size > 1) return;
    setImmediate(() => {
      const claims = [...this.#claims];
      this.#claims.clear();
      void this.#check(claims, false);
    });
  }

  /** Gives the ms until the next hold runs out, or -1. */
  async #check(waiters: readonly Waiter[], all: boolean): Promise<number> {
    const [first] = waiters;
    if (first === undefined) return -1;
    const startedAt = first.call.now();
    const sentAt = waiters.map(({ call }) => call.now());
    const known = waiters.map(({ ticket }) => ticket);
    let reply: string;
    try {
      const { rows } = await this.#ask([
        this.#room.client,
        waiters.map(({ request }) => Buffer.from(request.resource)),
        waiters.map(({ request }) => request.acquisitionId),
        waiters.map(({ request }) => request.ttlMs),
        all,
      ]);
      reply = rows[0]?.[0] ?? '';
    } catch (error) {
      for (const waiter of waiters) if (waiter.ticket !== undefined) this.#room.failed(waiter, error);
      return -1;
    }
    const { expiryMs, held, missing, handOvers } = parseCheck(reply);
    for (const [at, waiter] of waiters.entries()) {
      const { acquisitionId } = waiter.request;
      // Given up, or queued anew, while the look was under way.
      if (this.#room.waiters.get(acquisitionId) !== waiter || waiter.grant !== undefined) continue;
      if (waiter.ticket === undefined || waiter.ticket !== known[at]) continue;
      const hold = held.get(acquisitionId);
      if (hold !== undefined) this.#room.grant(waiter, hold.token, sentAt[at] as number, hold.ms);
      else if (missing.has(acquisitionId)) this.#room.passedOver(waiter);
      else waiter.confirmedAt = Math.max(waiter.confirmedAt, sentAt[at] as number);
    }
    // On core's clock, which goes on while the process is suspended (docs/spec.md §1.1).
    for (const handOver of handOvers) this.#room.handOver(handOver, () => first.call.now() - startedAt);
    return expiryMs;
  }

  /** Over the listener, which needs no connection of the pool and learns so whether it still lives. */
  async #ask(values: unknown[]): Promise<Answer> {
    const call = (): { now: () => number; deadline: number } => ({
      now: () => performance.now(),
      deadline: performance.now() + PATIENCE_MS,
    });
    if (this.#listener?.live) {
      try {
        return await this.#listener.run(this.#sql, values, call());
      } catch {
        // Gone, or another server than the one that the pool speaks to by now.
      }
    }
    return await this.#statements.run(this.#sql, values, call());
  }
}
