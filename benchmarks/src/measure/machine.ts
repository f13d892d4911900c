import { readFileSync } from 'node:fs';
import { createRequire, findPackageJSON } from 'node:module';
import { cpus, loadavg, platform, release, totalmem } from 'node:os';

export interface Machine {
  readonly cpu: string;
  readonly cores: number;
  readonly memoryGb: number;
  readonly kernel: string;
  /** Processes that wanted to run during the last minute: above a half, something else is running. */
  readonly load: number;
}

export function describeMachine(): Machine {
  const all = cpus();
  return {
    cpu: all[0]?.model.trim() ?? 'unknown',
    cores: all.length,
    memoryGb: Math.round(totalmem() / 2 ** 30),
    kernel: `${platform()} ${release()}`,
    load: loadavg()[0] ?? Number.NaN,
  };
}

/** The installed versions of packages, by the names under which this package depends on them. */
export function versionsOf(packages: Iterable<string>): Record<string, string> {
  const require = createRequire(import.meta.url);
  return Object.fromEntries(
    [...new Set(packages)].sort().map((name) => {
      const file = findPackageJSON(name, import.meta.url) ?? require.resolve(`${name}/package.json`);
      return [name, (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version];
    }),
  );
}
