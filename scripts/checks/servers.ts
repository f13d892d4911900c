import { join } from 'node:path';
import { root } from '../launcher/root.mjs';
import type { ServerName } from '../launcher/servers.mjs';
import { urlVariables } from '../launcher/servers.mjs';
import { runCommand } from './command.ts';
import type { Step, StepReport } from './step.ts';

/**
 * Installs the servers that the steps need. A server that cannot be installed fails the run, unless the user allows it to be
 * missing (`LOCKS_ALLOW_MISSING=redis`), which CI may not.
 */
export async function installServers(steps: readonly Step[]): Promise<StepReport[]> {
  const names = new Set(steps.flatMap((step) => [...(step.needs ?? []), ...(step.uses ?? [])]));
  const allowed = process.env['CI'] ? [] : (process.env['LOCKS_ALLOW_MISSING'] ?? '').split(',');
  const reports: StepReport[] = [];
  const installer = join(root, 'test-servers/install.mjs');
  // One run of the package manager installs all; the runs below report each server that is still missing.
  if (names.size > 1) await runCommand(process.execPath, [installer, ...names]);
  for (const name of names) {
    const start = performance.now();
    const { ok, output } = await runCommand(process.execPath, [installer, name]);
    const seconds = (performance.now() - start) / 1_000;
    const step = `servers:${name}`;
    if (ok) {
      reports.push({ name: step, seconds, outcome: 'ok', passed: 1, failed: 0, output });
    } else if (allowed.includes(name)) {
      reports.push({ name: step, seconds, outcome: 'not run', passed: 0, failed: 0, output });
    } else {
      const advice = `Install it, or set ${urlVariables[name]} to a running server, or (not in CI) set LOCKS_ALLOW_MISSING=${name} to do without.`;
      reports.push({
        name: step,
        seconds,
        outcome: 'failed',
        passed: 0,
        failed: 1,
        output: `${output}\n${advice}`,
      });
    }
  }
  return reports;
}

/** The servers that could not be installed. */
export function missingServers(reports: readonly StepReport[]): Set<ServerName> {
  const absent = reports.filter((report) => report.outcome !== 'ok').map((report) => report.name);
  return new Set(
    (Object.keys(urlVariables) as ServerName[]).filter((name) => absent.includes(`servers:${name}`)),
  );
}
