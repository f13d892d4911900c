import { expect, test } from 'vitest';
import { judgeMutant } from '../../src/mutants/judge-mutant.ts';
import { LockCode } from '../../src/process/lock-code.ts';

const USED_AGAIN = {
  file: 'core/src/rules/lock-rules.ts',
  from: 'const token = ++this.token;',
  to: 'const token = this.token;',
};

test('a schedule that fails with a mutant alone finds it', async () => {
  const mutated = await LockCode.load('rules', { changes: [USED_AGAIN] });
  const sound = await LockCode.load('rules');
  const { foundAfter, clause, unprovoked } = await judgeMutant({ mutated, sound }, 'rules', 1, 200);
  expect(foundAfter).toBeGreaterThan(0);
  expect(clause).toMatch(/^§/);
  expect(unprovoked).toEqual([]);
});

test('a schedule that fails without the mutant too finds nothing, and is told', async () => {
  const broken = await LockCode.load('rules', { changes: [USED_AGAIN] });
  const { foundAfter, unprovoked } = await judgeMutant({ mutated: broken, sound: broken }, 'rules', 1, 20);
  expect(foundAfter).toBeUndefined();
  expect(unprovoked.length).toBeGreaterThan(0);
  expect(unprovoked[0]).toMatchObject({ backend: 'rules', clause: expect.stringMatching(/^§/) });
});

test('a run that breaks off is a finding with words of its own', async () => {
  const change = {
    file: 'core/src/rules/lock-rules.ts',
    from: 'const NO_IDS: readonly string[] = [];',
    to: "const NO_IDS: readonly string[] = []; throw new Error('no rules');",
  };
  const mutated = await LockCode.load('rules', { changes: [change] });
  const { foundAfter, clause } = await judgeMutant(
    { mutated, sound: await LockCode.load('rules') },
    'rules',
    1,
    20,
  );
  expect(foundAfter).toBe(1);
  expect(clause).toBe('the run broke off');
});
