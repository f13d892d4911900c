import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { testSteps } from '../checks/steps/tests.ts';
import { workspacePackages } from '../checks/workspace.ts';
import { root } from '../launcher/root.mjs';
import { urlVariables } from '../launcher/servers.mjs';

/** Functions of `@locks/test-servers` that are not named after what they start. */
const OTHER_NAMES: Readonly<Record<string, string>> = { mariadb: 'mysql', moto: 's3', pgbouncer: 'postgres' };

/** The servers that the tests below a folder start. */
function startedBelow(folder: string): string[] {
  const texts = globSync('**/*.ts', { cwd: join(root, folder, 'test') }).map((file) =>
    readFileSync(join(root, folder, 'test', file), 'utf8'),
  );
  const names = texts.flatMap((text) => [...text.matchAll(/\bstart([A-Z]\w*?)(?:Cluster|Ensemble)?\(/g)]);
  const servers = names.map(([, name = '']) => OTHER_NAMES[name.toLowerCase()] ?? name.toLowerCase());
  return [...new Set(servers)].filter((server) => server in urlVariables);
}

it('the tests of a package run with each server that they start, which the step has installed before', () => {
  const folders = workspacePackages.filter(
    ({ path }) => path.startsWith('packages/') || path === 'simulation',
  );
  const wrong = folders.flatMap(({ path, shortName }) => {
    const step = testSteps.find(({ name }) => name === `unit:${shortName}`);
    const installed: readonly string[] = [...(step?.needs ?? []), ...(step?.uses ?? [])];
    return startedBelow(path)
      .filter((server) => !installed.includes(server))
      .map((server) => `${shortName}: ${server}`);
  });
  expect(wrong).toEqual([]);
  expect(startedBelow('packages/s3')).toEqual(expect.arrayContaining(['s3', 'seaweedfs']));
});
