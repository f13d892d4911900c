import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../launcher/root.mjs';

/** What the first program of the README prints. */
export const PRINTED = /^process \d+ holds token \d+$/;

/** What the README tells a newcomer: two commands that install from a checkout, and a first program. Throws where one of them is missing. */
export function firstSteps(readme = readFileSync(join(root, 'README.md'), 'utf8')): {
  readonly pack: string;
  readonly install: string;
  readonly program: string;
} {
  const command = (pattern: RegExp): string | undefined => pattern.exec(readme)?.[0].replace(/ +#.*/, '');
  const pack = command(/^npm run pack -- .*$/m);
  const install = command(/^npm i \.\.\/locks\/packed\/\*\.tgz .*$/m);
  const program = /^```ts\n([^]*?)^```$/m.exec(readme)?.[1];
  if (pack === undefined || install === undefined || program === undefined)
    throw new Error(
      'README.md lacks `npm run pack -- …`, `npm i ../locks/packed/*.tgz …` or its first program',
    );
  return { pack, install, program };
}

/** Writes the README's first program as `first.mjs`, with the address of the test's server. */
export function writeFirstProgram(folder: string): void {
  const server = "new Redis(process.env['REDIS_URL'])";
  writeFileSync(join(folder, 'first.mjs'), firstSteps().program.replace('new Redis()', server));
}
