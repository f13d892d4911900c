import { describe, expect, it } from 'vitest';
import { answerWithin, MAX_TIMEOUT_MS, NoAnswerError, withTimeLimit } from '../../src/backend/index.ts';

const never = new Promise<string>(() => {});

describe('a time limit', () => {
  it('gives what the work gives in time, and what stands for it when it is late', async () => {
    expect(await withTimeLimit(Promise.resolve('done'), 1_000, () => 'late')).toBe('done');
    expect(await withTimeLimit(never, 10, () => 'late')).toBe('late');
    await expect(withTimeLimit(Promise.reject(new Error('broken')), 1_000, () => 'late')).rejects.toThrow(
      'broken',
    );
  });

  it.each([MAX_TIMEOUT_MS + 1, Number.POSITIVE_INFINITY])(
    'of %s ms does not fire at once',
    async (limitMs) => {
      const work = new Promise((resolve) => setTimeout(resolve, 20, 'done'));
      expect(await withTimeLimit(work, limitMs, () => 'late')).toBe('done');
    },
  );

  it('rejects with the limit where no answer comes, and a failure after that concerns nobody', async () => {
    let fail = (_reason: Error): void => {};
    const work = new Promise((_, reject) => (fail = reject));
    const answer = answerWithin(work, 10);
    await expect(answer).rejects.toThrow(NoAnswerError);
    await expect(answer).rejects.toThrow('no answer within 10 ms');
    // An unhandled rejection would fail this run.
    fail(new Error('too late'));
    await new Promise((resolve) => setImmediate(resolve));
  });
});
