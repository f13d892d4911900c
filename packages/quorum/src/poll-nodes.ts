import { BudgetTimer, type Call, type LockBackend, NoAnswerError, TimeBudget } from '@locks/core/backend';
import type { NodeFailure } from './quorum-error.ts';

/** The answers so far. `answers` has an element for every node: `undefined` where no answer has come. */
export interface Votes<T> {
  readonly answers: readonly (T | undefined)[];
  readonly failures: readonly NodeFailure[];
  /** Nodes that may still answer. */
  readonly pending: number;
}

/**
 * Asks all nodes at once, each for at most `limitMs`. Resolves as soon as `decide` gives a value, which it must once nothing is
 * pending. Answers after that, and answers of nodes that were given up, go to `late`; `undefined` stands for an error.
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

    const check = (): void => {
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
    const conclude = (finish: () => void): void => {
      decided = true;
      // Nobody waits for the other answers: they must not keep the process alive.
      timer.unref();
      finish();
    };
    const fail = (index: number, error: unknown): void => {
      open.delete(index);
      failures.push({ node: nodes[index] as LockBackend, error });
      check();
    };
    const giveUp = (why: string | number): void => {
      // The abort reason tells a node that it used up its time.
      limit.abort(typeof why === 'number' ? new NoAnswerError(why) : undefined);
      for (const index of [...open]) fail(index, new NoAnswerError(why, nodes[index]?.connectionError?.()));
    };
    const now = (): number => call.now();
    const budget = new TimeBudget(now(), limitMs);
    const timer = new BudgetTimer(budget, () => giveUp(limitMs), now);
    const interrupted = (): void => giveUp('the caller gave up');
    const stop = (): void => {
      timer.clear();
      call.signal?.removeEventListener('abort', interrupted);
    };
    if (call.signal?.aborted) return interrupted();
    call.signal?.addEventListener('abort', interrupted, { once: true });

    const nodeCall: Call = {
      now,
      get deadline() {
        budget.isOver(now());
        return Math.min(call.deadline, budget.endsAt);
      },
      signal: limit.signal,
    };
    nodes.forEach((node, index) => {
      (async () => ask(node, nodeCall, index))().then(
        (answer) => {
          if (!open.delete(index)) return late(node, answer, index);
          answers[index] = answer;
          if (decided) late(node, answer, index);
          check();
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
