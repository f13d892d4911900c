import { AsyncLocalStorage } from 'node:async_hooks';
import { type LockBackend, type Attempt, type Call, NoAnswerError } from '@locks/core/backend';
import { ResourceLockedError } from './errors.ts';
import type { ExecutionStats, RedlockClient } from './execution-stats.ts';

/** The votes of one attempt while they come in. */
export class ClientVotes implements ExecutionStats {
  readonly membershipSize: number;
  readonly quorumSize: number;
  readonly votesFor = new Set<RedlockClient>();
  readonly votesAgainst = new Map<RedlockClient, Error>();

  constructor(membershipSize: number) {
    this.membershipSize = membershipSize;
    this.quorumSize = Math.floor(membershipSize / 2) + 1;
  }

  add(client: RedlockClient, refusal: Error | undefined): void {
    if (refusal === undefined) {
      this.votesAgainst.delete(client);
      this.votesFor.add(client);
    } else {
      this.votesFor.delete(client);
      this.votesAgainst.set(client, refusal);
    }
  }

  has(client: RedlockClient): boolean {
    return this.votesFor.has(client) || this.votesAgainst.has(client);
  }
}

/** The attempt that is under way in this asynchronous context. */
const underWay = new AsyncLocalStorage<ClientVotes>();

/** Runs an attempt; the votes of its clients come into `votes`. */
export function voting<T>(votes: ClientVotes, attempt: () => Promise<T>): Promise<T> {
  return underWay.run(votes, attempt);
}

/** The reason for a vote against the lock in the answer of a backend's method; `undefined` for a vote in favour. */
const refusals = {
  attempt: (answer: Attempt) => (answer?.status === 'granted' ? undefined : lockedElsewhere()),
  attemptMany: (answer: unknown) => (answer === undefined ? lockedElsewhere() : undefined),
  // An answer without a grant is a hint that an attempt may succeed: that attempt votes.
  awaitTurn: (answer: unknown) => (answer === undefined ? lockedElsewhere() : undefined),
} as const;

function lockedElsewhere(): Error {
  return new ResourceLockedError('somebody else holds the resource, or waits for it before this call');
}

/** The methods of a client whose answers are votes: they end with the parameter `call`. */
type Method = (...args: unknown[]) => Promise<unknown>;

/**
 * Wraps a backend, so that its answers are counted as votes of its client.
 *
 * @param report - gets every error of the client
 */
export function votingBackend(
  backend: LockBackend,
  client: RedlockClient,
  report: (error: Error) => void,
): LockBackend {
  return new Proxy(backend, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== 'function') return value;
      const method = value.bind(target) as Method;
      if (!Object.hasOwn(refusals, name)) return method;
      return counted(method, name as keyof typeof refusals, client, report);
    },
  });
}

function counted(
  method: Method,
  name: keyof typeof refusals,
  client: RedlockClient,
  report: (error: Error) => void,
): Method {
  return async (...args) => {
    const votes = underWay.getStore();
    const fail = (error: unknown): void => {
      const reason = error instanceof Error ? error : new Error(String(error));
      votes?.add(client, reason);
      report(reason);
    };
    const { signal } = args.at(-1) as Call;
    // Where the end of the call cuts an attempt of a client that has voted already, that vote stands, and the client is well.
    let voteStands = false;
    const gaveUp = (): void => {
      const hasVoted = votes?.has(client) === true;
      if (!(signal?.reason instanceof NoAnswerError)) {
        voteStands = hasVoted;
        if (!hasVoted) fail(new NoAnswerError('the client gave no answer before the call ended'));
      } else if (hasVoted) report(signal.reason);
      else fail(signal.reason);
    };
    // A wait for the turn is ended by its deadline; an attempt should have been answered before.
    if (name !== 'awaitTurn') signal?.addEventListener('abort', gaveUp, { once: true });
    try {
      const answer = await method(...args);
      votes?.add(client, refusals[name](answer as Attempt));
      return answer;
    } catch (error) {
      if (!voteStands) fail(error);
      throw error;
    } finally {
      signal?.removeEventListener('abort', gaveUp);
    }
  };
}
