import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, expect, it } from 'vitest';
import { root } from '../launcher/root.mjs';

// Outside of the repository, whose own lint would find the planted errors.
const folder = mkdtempSync(join(tmpdir(), 'private-fields-'));
afterAll(() => rmSync(folder, { recursive: true }));

it.each([
  ['is read and never changed', '#waiting = 0;', 'return this.#waiting;', 'prefer-readonly'],
  ['is read and never written', '#waiting: number | undefined;', 'return this.#waiting;', 'prefer-readonly'],
  [
    'is written and never read',
    '#waiting = 0;',
    'this.#waiting = performance.now();',
    'no-unused-private-class-members',
  ],
  ['is counted and never read', '#waiting = 0;', 'this.#waiting += 1;', 'no-unused-private-class-members'],
])('a private field that %s is refused', async (_, field, use, rule) => {
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions: { strict: true } }));
  writeFileSync(
    join(folder, 'planted.ts'),
    `export class Planted {\n  ${field}\n  use() {\n    ${use}\n  }\n}\n`,
  );
  const lint = promisify(execFile)(
    'oxlint',
    ['--type-aware', '--format', 'unix', '--config', join(root, '.oxlintrc.json')],
    { cwd: folder },
  );
  const refused: unknown = await lint.then(
    () => undefined,
    (error: unknown) => error,
  );
  expect(refused).toMatchObject({ stdout: expect.stringContaining(rule) });
});
