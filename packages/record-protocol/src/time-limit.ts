import { PRIORITIES, type Priority } from '@locks/core/backend';

/** The urgency of a request for a connection, which may rise while the request waits. */
export interface Urgency {
  /** One of `PRIORITIES` of `@locks/core/backend`. */
  readonly priority: Priority;
}

/** The time until which an answer is of use, on the clock of the call. */
export interface TimeLimit {
  /** The time now, in milliseconds. */
  now(): number;
  /** The time until which an answer is of use, in milliseconds. */
  readonly deadline: number;
  /** The urgency of the request for a connection, where a table has few; default: at once. */
  readonly urgency?: Urgency;
}

/** The urgency of what a holder waits for: at once. */
export const URGENT: Urgency = { priority: PRIORITIES.holder };
const PATIENT: Urgency = { priority: PRIORITIES.acquire };

const OWN_LIMIT_MS = 2_000;

/** The limit of a call whose connection may wait until the releases and renewals of others have theirs. */
export function unhurried(call: TimeLimit): TimeLimit {
  return {
    now: () => call.now(),
    get deadline() {
      return call.deadline;
    },
    urgency: PATIENT,
  };
}

/** The time limit of the backend's own requests. */
export function ownLimit(limitMs = OWN_LIMIT_MS): TimeLimit {
  const now = (): number => performance.now();
  return { now, deadline: now() + limitMs };
}
