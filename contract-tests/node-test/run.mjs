/**
 * Runs the suite through its `node:test` binding on every Node that users may have, and prints a table. The packages
 * must be built. `node node-test/run.mjs [major…]`
 */
import { fileURLToPath } from 'node:url';
import { runCommand } from '../../scripts/checks/command.ts';
import { nodesOfUsers } from '../../scripts/checks/nodes.ts';

const wanted = process.argv.slice(2);
const nodes = (await nodesOfUsers())
  .map((node) => ({ ...node, major: Number.parseInt(node.version.slice(1), 10) }))
  .filter(({ major }) => wanted.length === 0 || wanted.includes(String(major)))
  .sort((a, b) => a.major - b.major);

const rows = [];
for (const { version, executable, major } of nodes) {
  // `node:sqlite` came with Node 22.13.
  for (const backend of major >= 22 ? ['memory', 'sqlite'] : ['memory']) {
    const file = fileURLToPath(new URL(`${backend}.test.mjs`, import.meta.url));
    const startedAt = performance.now();
    const { ok, output } = await runCommand(executable, ['--test', '--test-reporter=tap', file]);
    const seconds = ((performance.now() - startedAt) / 1_000).toFixed(1);
    const count = (what) => Number(output.match(new RegExp(`^# ${what} (\\d+)$`, 'm'))?.[1] ?? 0);
    rows.push({
      node: version,
      backend,
      passed: count('pass'),
      'not applicable': count('skipped'),
      failed: count('fail'),
      seconds,
    });
    // A run that registered nothing is no success.
    if (ok && count('pass') > 0) continue;
    process.exitCode = 1;
    console.error(
      `The suite fails on Node ${version} with ${backend}:\n${output
        .split('\n')
        .filter((line) => /not ok|error:|failureType/.test(line))
        .join('\n')}`,
    );
  }
}
console.table(rows);
if (rows.length === 0) process.exitCode = 1;
