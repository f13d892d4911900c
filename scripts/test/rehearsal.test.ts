import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { firstSteps } from '../checks/first-steps.ts';
import { problemOfPins } from '../checks/steps/workflows.ts';
import { isAllowed } from '../release/rehearsal/bill-of-materials.ts';
import { tarballsOf } from '../release/stage.mjs';

describe('pins of the workflows', () => {
  const commit = '0123456789abcdef0123456789abcdef01234567';

  test('a commit with its version behind it is a pin', () => {
    expect(problemOfPins(`      - uses: actions/checkout@${commit} # v6.0.3`)).toBeUndefined();
    expect(problemOfPins(`        uses: a/b/init@${commit} # v4.36.2\n      - uses: ./own`)).toBeUndefined();
  });

  test.each(['actions/checkout@v6', `a/b@${commit}`, `a/b@${commit.slice(1)} # v1`, 'a/b@main # v1'])(
    '%s is none',
    (uses) => expect(problemOfPins(`      - uses: ${uses}`)).toContain(uses),
  );
});

test('a licence is allowed by its list, a choice by one of its parts, a conjunction by all', () => {
  expect(['MIT', '(GPL-3.0-only OR MIT)', 'MIT AND ISC'].every(isAllowed)).toBe(true);
  expect(['GPL-3.0-only', 'MIT AND GPL-3.0-only', 'unknown', ''].some(isAllowed)).toBe(false);
});

describe('what is staged at npm', () => {
  const packed = (integrity: string): string => {
    const folder = mkdtempSync(join(tmpdir(), 'packed-'));
    mkdirSync(join(folder, 'packages'));
    writeFileSync(join(folder, 'packages/core.tgz'), 'content');
    const tarball = { path: 'packages/core.tgz', integrity };
    const plan = [[{ name: '@locks/core', version: '0.1.0', kind: 'publish', tarball }], []];
    writeFileSync(join(folder, 'publish-plan.json'), JSON.stringify({ version: 1, plan }));
    return folder;
  };

  test('is the tarball that was packed', () => {
    const folder = packed(`sha256-${createHash('sha256').update('content').digest('base64')}`);
    expect(tarballsOf(folder)).toEqual([
      { name: '@locks/core@0.1.0', file: join(folder, 'packages/core.tgz') },
    ]);
  });

  test('is refused when the tarball changed since', () => {
    expect(() => tarballsOf(packed('sha256-abc'))).toThrow('is not what was packed');
  });
});

test('the first steps of a newcomer are read from the README, without the comments behind the commands', () => {
  const readme = [
    '```ts',
    "console.log('first');",
    '```',
    '```sh',
    'npm run pack -- redis-ioredis         # in the checkout',
    'npm i ../locks/packed/*.tgz ioredis   # in your project',
    '```',
  ].join('\n');
  expect(firstSteps(readme)).toEqual({
    pack: 'npm run pack -- redis-ioredis',
    install: 'npm i ../locks/packed/*.tgz ioredis',
    program: "console.log('first');\n",
  });
  expect(() => firstSteps(readme.replace('npm i', 'npm add'))).toThrow('README.md lacks');
});
