import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { type CheckCommand, commandStep } from '../checks/command-step.ts';

const context = { missing: new Set<never>(), testArguments: [], repeats: true };

function run(commands: readonly CheckCommand[], options = {}) {
  const step = { name: 'step', about: '', kind: 'static', ...options } as const;
  return commandStep(step, () => commands).run(context);
}

/** Fails the first time that it runs. */
function failsOnce(says: string): CheckCommand {
  const mark = join(mkdtempSync(join(tmpdir(), 'mark-')), 'mark');
  return ['by chance', 'sh', ['-c', `echo ${says}; test -e ${mark} || { touch ${mark}; exit 1; }`]];
}

describe('a step of commands', () => {
  it('fails where a command fails, or prints something else than what is expected', async () => {
    const result = await run([
      ['a', 'echo', ['{"a":1}'], { expected: { a: 1 } }],
      ['b', 'echo', ['{"a":2}'], { expected: { a: 1 } }],
      ['c', 'sh', ['-c', 'echo why; exit 1']],
      ['d', 'true', [], { expected: /./ }],
    ]);
    expect(result).toMatchObject({ passed: 1, failed: 3 });
    expect(result.failures?.map(({ says }) => says)).toEqual([
      'b: {"a":2}',
      'c: why',
      'd: failed without output',
    ]);
  });

  it('tells the lines that it shows', async () => {
    const result = await run([['a', 'printf', ['one\\n  two\\n']]], { shows: /^ +two/ });
    expect(result.notes).toEqual(['  two']);
  });

  it('repeats alone what failed, where it is told to', async () => {
    expect((await run([failsOnce('x')])).again).toBeUndefined();
    const result = await run([failsOnce('x'), ['b', 'true', []]], { repeats: true, lanes: 2 });
    expect(result).toMatchObject({ passed: 1, failed: 1 });
    expect(await result.again?.()).toMatchObject({ passed: 2, failed: 0, onlyAlone: ['by chance'] });
  });

  it('stays failed where it fails alone too', async () => {
    const result = await run([['a', 'false', []]], { repeats: true });
    const again = await result.again?.();
    expect(again).toMatchObject({ passed: 0, failed: 1 });
    expect(again?.onlyAlone).toBeUndefined();
  });

  it('never repeats a violation of safety', async () => {
    const result = await run([failsOnce('SafetyViolation')], { repeats: true });
    expect(result).toMatchObject({ failed: 1 });
    expect(result.again).toBeUndefined();
  });
});
