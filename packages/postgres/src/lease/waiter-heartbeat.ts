import { answerWithin, NoAnswerError, PRIORITIES } from '@locks/core/backend';
import type { Value } from '../driver/postgres-driver.ts';
import type {
  PostgresStatements,
  StatementDeadline,
  StatementResult,
} from '../driver/postgres-statements.ts';
import type { Listener } from './listener.ts';
import type { PostgresWaiter, WaiterRegistry } from './postgres-waiter.ts';
import { parseCheck } from './replies.ts';

/** The interval of the checks. The store passes over the waiters of a client that it has not heard of for 3 s. */
const CHECK_MS = 1_000;
/** The interval of the checks where the store cannot notify this client. */
const POLL_MS = 100;
/** The time that one check waits for its answer, first over the listener and then over the pool. */
const ANSWER_MS = 1_000;
/** The longest delay until the process notices that a check got no answer. */
const SILENCE_NOTICED_MS = 250;
/** The shortest time between two checks, however soon a hold expires. */
const SHORTEST_MS = 25;
/** The delay of the check after the expiry of a hold; the jitter spreads the checks of many processes. */
const AFTER_EXPIRY_MS = 3;
const EXPIRY_JITTER_MS = 10;

/**
 * The heartbeat of all waiters of a backend: one statement that keeps them alive in the store, finds hand-offs whose
 * message was lost, and serves resources whose holder expired. See migrations/1/30-check.sql.
 */
export class PostgresWaiterHeartbeat {
  readonly #statements: PostgresStatements;
  readonly #listener: Listener | undefined;
  readonly #sql: string;
  readonly #local: WaiterRegistry;
  #everyMs: number;
  #ranAt = Number.NEGATIVE_INFINITY;
  /** The listener's key that the store was told last. */
  #told: string | undefined;

  constructor(
    statements: PostgresStatements,
    listener: Listener | undefined,
    schema: string,
    local: WaiterRegistry,
  ) {
    this.#statements = statements;
    this.#listener = listener;
    this.#sql = `SELECT ${schema}.check_waiters($1, $2, $3, $4)`;
    this.#local = local;
    this.#everyMs = listener === undefined ? POLL_MS : CHECK_MS;
  }

  /** Makes the checks more frequent: the store cannot notify this client. */
  checkOften(): void {
    this.#everyMs = POLL_MS;
    this.#local.known.pollWithin(0);
  }

  /** Plans the next check. The hold before a waiter expires in `expiryMs` unless it is renewed; negative: not known. */
  expect(expiryMs: number): void {
    const untilExpiry =
      expiryMs < 0 ? this.#everyMs : expiryMs + AFTER_EXPIRY_MS + Math.random() * EXPIRY_JITTER_MS;
    const shortest = this.#ranAt + SHORTEST_MS - performance.now();
    this.#local.known.pollWithin(Math.max(Math.min(this.#everyMs, untilExpiry), shortest));
  }

  /**
   * Checks now, unless the store knows whether this backend listens: the store hands nothing off to a backend that does not.
   */
  tellOfListener(): void {
    if (this.#listener?.key !== this.#told) this.#local.known.pollWithin(0);
  }

  /** Checks all waiters, and plans the next check. */
  async check(): Promise<void> {
    this.#ranAt = performance.now();
    this.#listener?.open();
    this.expect(await this.#check(this.#local.known.all()));
  }

  /** Checks the waiters. Resolves to the milliseconds until the next hold expires, or -1. */
  async #check(waiters: readonly PostgresWaiter[]): Promise<number> {
    const [first] = waiters;
    if (first === undefined) return -1;
    const startedAt = first.call.now();
    const sentAt = waiters.map(({ call }) => call.now());
    const tickets = waiters.map(({ ticket }) => ticket);
    let reply: string;
    try {
      const values = [
        this.#local.client,
        waiters.map(({ request }) => Buffer.from(request.resource)),
        waiters.map(({ request }) => request.acquisitionId),
      ];
      const { rows } = await this.#ask(values, (error) => failEndingSoon(waiters, error));
      reply = rows[0]?.[0] ?? '';
    } catch (error) {
      for (const waiter of waiters) if (waiter.ticket !== undefined) waiter.wait.fail(error);
      return -1;
    }
    const { expiryMs, held, missing, handOffs } = parseCheck(reply);
    for (const [at, waiter] of waiters.entries()) {
      const { acquisitionId } = waiter.request;
      const hold = held.get(acquisitionId);
      const isWaiting = this.#local.known.get(acquisitionId) === waiter && waiter.grant === undefined;
      // The acquisition was given up, granted, or queued again while the check was under way.
      if (!isWaiting || waiter.ticket === undefined || waiter.ticket !== tickets[at]) {
        if (hold !== undefined) this.#local.abandonGivenUp(acquisitionId);
        continue;
      }
      if (hold !== undefined) {
        this.#local.known.grant(waiter, {
          request: waiter.request,
          fencingToken: hold.token,
          countedFrom: sentAt[at] as number,
          validForMs: hold.leftMs,
        });
      } else if (missing.has(acquisitionId)) {
        waiter.ticket = undefined;
        // Core attempts again.
        waiter.wait.end();
      } else waiter.confirmedAt = Math.max(waiter.confirmedAt, sentAt[at] as number);
    }
    // The age is read on core's clock, which goes on while the process is suspended (docs/spec.md §1.1).
    this.#local.handOffAll(handOffs, () => first.call.now() - startedAt);
    return expiryMs;
  }

  /** Asks the listener first: it needs no connection of the pool, and the check shows whether the listener still lives. */
  async #ask(values: readonly Value[], silent: (error: NoAnswerError) => void): Promise<StatementResult> {
    const now = (): number => performance.now();
    const listener = this.#listener;
    if (listener?.key !== undefined) {
      try {
        const { key } = listener;
        const result = await listener.run(this.#sql, [...values, key], { now, deadline: now() + ANSWER_MS });
        this.#told = key;
        return result;
      } catch (error) {
        // The listener is gone, or reaches another server than the pool by now: the pool is asked.
        if (error instanceof NoAnswerError) silent(error);
      }
    }
    let isGivenUp = false;
    // A connection that comes right after a stall of the event loop comes in time (docs/spec.md §2.9): the limit below says when it does not.
    const call: StatementDeadline = {
      now,
      get deadline() {
        return isGivenUp ? Number.NEGATIVE_INFINITY : now() + ANSWER_MS;
      },
    };
    // A driver may take long to find that no connection can be made.
    const asked = this.#statements.run(this.#sql, [...values, null], call, PRIORITIES.holder);
    try {
      const result = await answerWithin(asked, ANSWER_MS + SILENCE_NOTICED_MS);
      this.#told = undefined;
      return result;
    } finally {
      isGivenUp = true;
    }
  }
}

/**
 * Fails the waits whose deadline comes before a connection of the pool could count as silent too. Core attempts each of
 * them again: the acquisition keeps its position if the store answers, and else is not reported as contended
 * (docs/spec.md §7.5).
 */
function failEndingSoon(waiters: readonly PostgresWaiter[], error: NoAnswerError): void {
  for (const { call, ticket, wait } of waiters) {
    const endsSoon = call.deadline < call.now() + ANSWER_MS + SILENCE_NOTICED_MS;
    if (endsSoon && ticket !== undefined) wait.fail(error);
  }
}
