import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

/** The `tsc` of one of the compilers that scripts/package.json names. */
export function compilerPath(name: string): string {
  const manifest = createRequire(import.meta.url).resolve(`${name}/package.json`);
  return join(dirname(manifest), 'bin/tsc');
}
