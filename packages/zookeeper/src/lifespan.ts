/** An answered write proves that the session lived, until this part of its timeout after the write was sent. */
const PROVEN = 2 / 3;
/** Clocks of two machines may run apart by 1 %, and timers fire late. */
const TRUSTED = 0.98;
/** A server reports the sessions it heard of to its leader every half tick, and no session is shorter than two ticks. */
const REPORTED = 1 / 4;

/**
 * Until when a session is certain to live at the leader, known from the writes that it answered.
 *
 * The leader ends a session one timeout after it last heard of it. It hears of it from the follower that serves the
 * client, with the follower's next report; a follower that freezes right after an answer never sends that report. So
 * an answer proves two things: at its sending the leader had the session, and the report of an earlier one, at least
 * half a tick before, had arrived.
 */
export class Lifespan {
  readonly #timeoutMs: number;
  /** When something was sent of which the leader has surely heard. */
  #reported: number;
  /** The first one since then. */
  #candidate: number;
  #answered = Number.NEGATIVE_INFINITY;
  #validUntil = Number.NEGATIVE_INFINITY;

  /** `heardAt`: before which moment the leader cannot have heard of it last. */
  constructor(timeoutMs: number, heardAt: number) {
    this.#timeoutMs = timeoutMs;
    this.#reported = heardAt;
    this.#candidate = heardAt;
  }

  get validUntil(): number {
    return this.#validUntil;
  }

  /** A write that was sent at `sentAt` has been answered. */
  proven(sentAt: number): void {
    if (sentAt <= this.#answered) return;
    this.#answered = sentAt;
    if (sentAt - this.#candidate >= this.#timeoutMs * REPORTED) {
      this.#reported = this.#candidate;
      this.#candidate = sentAt;
    }
    // Counted from before sending: whatever froze since then, the leader waits longer (docs/spec.md §8.2).
    this.#validUntil = Math.min(
      sentAt + this.#timeoutMs * PROVEN,
      this.#reported + this.#timeoutMs * TRUSTED,
    );
  }

  end(): void {
    this.#answered = Number.POSITIVE_INFINITY;
    this.#validUntil = Number.NEGATIVE_INFINITY;
  }
}
