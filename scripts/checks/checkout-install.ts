import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { hostPath } from '../launcher/environment.mjs';
import { root } from '../launcher/root.mjs';
import { problemOf } from './command.ts';
import { problemOfOutput, withServers } from './runtimes.ts';

/** What the first program of the README prints. */
export const PRINTED = /^process \d+ holds token \d+$/;

/** What the README tells a newcomer: two commands that install from a checkout, and a first program. */
interface FirstSteps {
  readonly pack: string;
  readonly install: string;
  readonly program: string;
}

/** Reads the two commands and the first program of a README; throws where one of them is missing. */
export function firstStepsOf(readme: string): FirstSteps {
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
  const { program } = firstStepsOf(readFileSync(join(root, 'README.md'), 'utf8'));
  const server = "new Redis(process.env['REDIS_URL'])";
  writeFileSync(join(folder, 'first.mjs'), program.replace('new Redis()', server));
}

/**
 * Does in a temporary folder what the README says: packs, installs into an empty project, and runs the first program on a Redis
 * server, where one can be had. The tarballs go to another folder than `packed/`, which may be in use. `undefined`: it worked.
 */
export async function problemOfFirstSteps(hasRedis: boolean): Promise<string | undefined> {
  const { pack, install } = firstStepsOf(readFileSync(join(root, 'README.md'), 'utf8'));
  // The space is on purpose: paths of users have them.
  const beside = join(mkdtempSync(join(tmpdir(), 'checkout-')), 'first steps');
  const project = join(beside, 'project');
  mkdirSync(project, { recursive: true });
  const env = { ...process.env, PATH: hostPath() };
  const inShell = (line: string, cwd: string) =>
    problemOf('sh', ['-c', line], { cwd, env, limitMs: 180_000 });
  const failed =
    (await inShell(`${pack} --to "${join(beside, 'locks/packed')}"`, root)) ??
    (await inShell(`${install} --no-audit --no-fund --prefer-offline`, project));
  if (failed !== undefined) return failed;
  if (!hasRedis) return undefined;
  writeFirstProgram(project);
  return withServers(['redis'], (urls) =>
    problemOfOutput(process.execPath, ['first.mjs'], project, PRINTED, urls),
  );
}
