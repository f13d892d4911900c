import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

it('embeds the scripts as they are', () => {
  const generator = fileURLToPath(new URL('../generate.mjs', import.meta.url));
  expect(() => execFileSync(process.execPath, [generator, '--check'], { stdio: 'pipe' })).not.toThrow();
});
