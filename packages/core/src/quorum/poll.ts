import { asked } from '../acquire/failure.ts';
import type { Call, LockBackend } from '../backend/types.ts';
import type { NodeFailure } from './quorum-error.ts';

/** What came back so far. `answers` has a place for every node; `undefined` where none came yet, or none will. */
export interface Votes<T> {
  readonly answers: readonly (T | undefined)[];
  readonly failures: readonly NodeFailure[];
  /** Nodes that may still answer. */
  readonly pending: number;
}

/**
 * Asks all nodes at once, each for at most `limitMs`, and settles as soon as `decide` gives something; it must, once
 * nothing is pending. What comes after its node was given up, or after the decision, goes to `late`: the answer, or
 * `undefined` for an error.
 */
export function poll<T, R>(
  nodes: readonly LockBackend[],
  limitMs: number,
  call: Call,
  ask: (node: LockBackend, call: Call, index: number) => Promise<T>,
  decide: (votes: Votes<T>) => R | undefined,
  late: (node: LockBackend, answer: T | undefined, index: number) => void = () => {},
): Promise<R> {
  return new Promise((resolve, reject) => {
    const answers: (T | undefined)[] = nodes.map(() => undefined);
    const failures: NodeFailure[] = [];
    const open = new Set(nodes.keys());
    const limit = new AbortController();
    let decided = false;

    const look = (): void => {
      if (!decided) {
        try {
          const decision = decide({ answers, failures, pending: open.size });
          if (decision !== undefined) conclude(() => resolve(decision));
        } catch (error) {
          conclude(() => reject(error));
        }
      }
      if (open.size === 0) stop();
    };
    const conclude = (tell: () => void): void => {
      decided = true;
      // Nobody waits for the rest: that is no reason to keep the process alive.
      timer.unref();
      tell();
    };
    const fail = (index: number, error: unknown): void => {
      open.delete(index);
      failures.push({ node: nodes[index] as LockBackend, error });
      look();
    };
    const giveUp = (why: string): void => {
      limit.abort();
      for (const index of [...open]) fail(index, new NoAnswer(why));
    };
    const timer = setTimeout(() => giveUp(`no answer within ${Math.round(limitMs)} ms`), limitMs);
    const interrupted = (): void => giveUp('the caller gave up');
    const stop = (): void => {
      clearTimeout(timer);
      call.signal?.removeEventListener('abort', interrupted);
    };
    if (call.signal?.aborted) return interrupted();
    call.signal?.addEventListener('abort', interrupted, { once: true });

    const now = (): number => call.now();
    const nodeCall: Call = { now, deadline: Math.min(call.deadline, now() + limitMs), signal: limit.signal };
    nodes.forEach((node, index) => {
      asked(() => ask(node, nodeCall, index)).then(
        (answer) => {
          if (!open.delete(index)) return late(node, answer, index);
          answers[index] = answer;
          if (decided) late(node, answer, index);
          look();
        },
        (error: unknown) => {
          const inTime = open.has(index);
          if (!inTime || decided) late(node, undefined, index);
          if (inTime) fail(index, error);
        },
      );
    });
  });
}

/** A node did not answer in time. The call may have run all the same. */
export class NoAnswer extends Error {}
