import { describe, expect, it } from 'vitest';
import { checkHistory } from '../src/index.ts';
import { isPossible } from './exhaustive-checker.ts';
import { randomHistory, randomNumbers } from './random-history.ts';

/** Some seconds; `LOCKS_HISTORIES=1000000` compares as many, from the seed `LOCKS_HISTORIES_SEED` on. */
const HISTORIES = Number(process.env['LOCKS_HISTORIES'] ?? 50_000);
const FIRST_SEED = Number(process.env['LOCKS_HISTORIES_SEED'] ?? 1);

describe('the checker and one that tries every order', { timeout: 60_000 + HISTORIES }, () => {
  it(`agree on ${HISTORIES} small random histories`, () => {
    const verdicts = { kept: 0, broken: 0 };
    const startedAt = performance.now();
    for (let seed = FIRST_SEED; seed < FIRST_SEED + HISTORIES; seed += 1) {
      const random = randomNumbers(seed);
      const promises = { fenced: random() < 0.3, reentrant: random() < 0.7 };
      const events = randomHistory(random);
      const { violations } = checkHistory(
        events,
        ...(promises.fenced ? (['fenced'] as const) : []),
        ...(promises.reentrant ? (['reentrant'] as const) : []),
      );
      const isKept = isPossible(events, promises);
      verdicts[isKept ? 'kept' : 'broken'] += 1;
      if ((violations.length === 0) === isKept) continue;
      const lines = events.map((event) => JSON.stringify(event)).join('\n');
      const found = violations.map(({ kind, sentence }) => `${kind}: ${sentence}`).join('\n');
      expect.fail(
        `seed ${seed}, ${JSON.stringify(promises)}: possible ${isKept}, found:\n${found}\n${lines}`,
      );
    }
    const seconds = ((performance.now() - startedAt) / 1_000).toFixed(1);
    process.stdout.write(`    ${JSON.stringify(verdicts)} in ${seconds} s\n`);
    expect(verdicts.kept).toBeGreaterThan(HISTORIES / 10);
    expect(verdicts.broken).toBeGreaterThan(HISTORIES / 10);
  });
});
