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
 * nothing is pending. An answer that comes after its node was given up, or after the decision, goes to `late`.
 */
export function poll<T, R>(
  nodes: readonly LockBackend[],
  limitMs: number,
  call: Call,
  ask: (node: LockBackend, call: Call, index: number) => Promise<T>,
  decide: (votes: Votes<T>) => R | undefined,
  late: (node: LockBackend, answer: T, index: number) => void = () => {},
): Promise<R> {
  return new Promise((resolve, reject) => {
    const answers: (T | undefined)[] = nodes.map(() => undefined);
    const failures: NodeFailure[] = [];
    const open = new Set(nodes.keys());
    const limit = new AbortController();
    let decided = false;

    const look = (): void => {
      if (decided) return;
      try {
        const decision = decide({ answers, failures, pending: open.size });
        if (decision === undefined) return;
        decided = true;
        resolve(decision);
      } catch (error) {
        decided = true;
        reject(error);
      }
      if (open.size === 0) stop();
    };
    const fail = (index: number, error: unknown): void => {
      if (!open.delete(index)) return;
      failures.push({ node: nodes[index] as LockBackend, error });
      look();
      if (open.size === 0) stop();
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
    call.signal?.addEventListener('abort', interrupted, { once: true });

    const now = (): number => call.now();
    const nodeCall: Call = { now, deadline: Math.min(call.deadline, now() + limitMs), signal: limit.signal };
    nodes.forEach((node, index) => {
      asked(() => ask(node, nodeCall, index)).then(
        (answer) => {
          const inTime = open.delete(index);
          if (inTime) answers[index] = answer;
          if (!inTime || decided) late(node, answer, index);
          else look();
          if (open.size === 0) stop();
        },
        (error: unknown) => fail(index, error),
      );
    });
  });
}

/** A node did not answer in time. The call may have run all the same. */
export class NoAnswer extends Error {}
