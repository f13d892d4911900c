import { join } from 'node:path';
import { root } from '../launcher/root.mjs';
import type { ServerName } from '../launcher/servers.mjs';
import { isOptional, urlVariables } from '../launcher/servers.mjs';
import { runCommand } from './command.ts';
import type { Step, StepEvents, StepReport } from './step.ts';

export function serversFor(steps: readonly Step[]): ServerName[] {
  return [...new Set(steps.flatMap((step) => [...(step.needs ?? []), ...(step.uses ?? [])]))];
}

export function serverStep(server: ServerName): Pick<Step, 'name' | 'kind'> {
  return { name: `servers:${server}`, kind: 'alone' };
}

/**
 * Installs servers. One that cannot be installed fails the run, unless it needs Java or Python, or the user allows it to be
 * missing (`LOCKS_ALLOW_MISSING=redis`), which CI may not.
 */
export async function installServers(
  servers: readonly ServerName[],
  events?: StepEvents,
): Promise<StepReport[]> {
  const allowed = process.env['CI'] ? [] : (process.env['LOCKS_ALLOW_MISSING'] ?? '').split(',');
  const installer = join(root, 'test-servers/install.mjs');
  const reports: StepReport[] = [];
  for (const server of servers) {
    const { name } = serverStep(server);
    events?.started({ name });
    const start = performance.now();
    // With the first one the package manager brings all; the runs for the others say whether theirs is there.
    if (reports.length === 0 && servers.length > 1)
      await runCommand(process.execPath, [installer, ...servers]);
    const { ok, output } = await runCommand(process.execPath, [installer, server]);
    const advice = `Install it, or set ${urlVariables[server]} to a running server, or (not in CI) set LOCKS_ALLOW_MISSING=${server} to do without.`;
    const failed = !ok && !isOptional(server) && !allowed.includes(server);
    const report: StepReport = {
      name,
      seconds: (performance.now() - start) / 1_000,
      outcome: ok ? 'ok' : failed ? 'failed' : 'not run',
      passed: ok ? 1 : 0,
      failed: failed ? 1 : 0,
      output: failed ? `${output}\n${advice}` : output,
    };
    events?.ended(report);
    reports.push(report);
  }
  return reports;
}

/** The servers that could not be installed. */
export function missingServers(reports: readonly StepReport[]): Set<ServerName> {
  const absent = reports.filter((report) => report.outcome !== 'ok').map((report) => report.name);
  return new Set(
    (Object.keys(urlVariables) as ServerName[]).filter((name) => absent.includes(serverStep(name).name)),
  );
}

/** The user's servers where variables name them, else private ones for as long as `work` takes. */
export async function withServers<T>(
  kinds: readonly ServerName[],
  work: (env: NodeJS.ProcessEnv) => Promise<T>,
): Promise<T> {
  if (kinds.length === 0) return work({});
  // Imported here, after the build: the module reads `dist/`.
  const { serverOf } = await import('../../examples/src/demo/servers.ts');
  const started = await Promise.all(
    kinds.map(async (kind) => ({ variable: `${kind.toUpperCase()}_URL`, server: await serverOf(kind) })),
  );
  try {
    return await work(Object.fromEntries(started.map(({ variable, server }) => [variable, server.at])));
  } finally {
    await Promise.all(started.map(({ server }) => server.stop()));
  }
}
