/** An answered write proves the session for this part of its timeout, counted from the sending. */
const PROVEN = 2 / 3;
/** A margin, since the clocks of two machines may drift by 1 %, and timers fire late. */
const TRUSTED = 0.98;
/** A server reports its active sessions to the leader every half tick, and no session is shorter than two ticks. */
export const REPORTED = 1 / 4;
/** Of writes that were sent within this part of the timeout one is kept. */
const APART = 1 / 24;

interface AnsweredWrite {
  readonly sentAt: number;
  readonly answeredAt: number;
}

/**
 * Computes until when a session is certain to live at the leader, from the writes that were answered.
 *
 * The leader ends a session one timeout after the last report about it. The follower that serves the client reports the
 * session at intervals; a follower that freezes right after an answer never sends the next report. So an answer proves
 * two things: the leader had the session when the request was sent, and the leader has received the report of any
 * activity that the follower saw at least half a tick earlier. It had surely seen an earlier write when that was answered, and not
 * when it was sent: a network that stood still brings together what was sent apart.
 */
export class SessionValidity {
  readonly #timeoutMs: number;
  /** The sending of the newest write that the leader has surely received a report of. */
  #reported: number;
  /** Later answered writes, whose reports the leader may not have received. */
  readonly #unreported: AnsweredWrite[] = [];
  #answered = Number.NEGATIVE_INFINITY;
  #validUntil = Number.NEGATIVE_INFINITY;

  /** @param heardAt - the earliest moment at which the leader may have heard of the session last */
  constructor(timeoutMs: number, heardAt: number) {
    this.#timeoutMs = timeoutMs;
    this.#reported = heardAt;
  }

  get validUntil(): number {
    return this.#validUntil;
  }

  /** Records that a write which was sent at `sentAt` was answered at `answeredAt`. */
  proven(sentAt: number, answeredAt: number): void {
    if (sentAt <= this.#answered) return;
    this.#answered = sentAt;
    const reportedUntil = sentAt - this.#timeoutMs * REPORTED;
    for (let [write] = this.#unreported; write !== undefined; [write] = this.#unreported) {
      if (write.answeredAt > reportedUntil) break;
      this.#reported = write.sentAt;
      this.#unreported.shift();
    }
    const { sentAt: last = Number.NEGATIVE_INFINITY } = this.#unreported.at(-1) ?? {};
    if (sentAt - last >= this.#timeoutMs * APART) this.#unreported.push({ sentAt, answeredAt });
    // The validity is counted from before the sending: whatever froze since then, the leader waits longer (docs/spec.md §8.2).
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
