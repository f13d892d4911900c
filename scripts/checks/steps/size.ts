import { build } from 'esbuild';
import { gzipSync } from 'node:zlib';
import type { Step } from '../step.ts';
import { resultOf } from '../step.ts';
import { publishedPackages } from '../workspace.ts';

interface Budget {
  readonly limitBytes: number;
  /** Left out of the bundle: what the user has anyway. */
  readonly external: readonly string[];
}

const kilobyte = 1_000;
const budgets: Readonly<Record<string, Budget>> = {
  core: { limitBytes: 10 * kilobyte, external: [] },
  'redis-ioredis': { limitBytes: 8 * kilobyte, external: ['@locks/core', 'ioredis'] },
  'redis-node': { limitBytes: 8 * kilobyte, external: ['@locks/core', 'redis', '@redis/*'] },
};

/** What an application carries: the main entry bundled, minified and gzipped. */
export const sizeStep: Step = {
  name: 'size',
  about: 'the main entries stay within their budgets, minified and gzipped',
  kind: 'static',
  async run() {
    const checks = [];
    const notes = [];
    for (const { shortName, folder, manifest } of publishedPackages) {
      const budget = budgets[shortName] ?? { limitBytes: Infinity, external: ['@locks/core'] };
      const bytes = await bundledBytes(folder, manifest.name, budget.external).catch((error: unknown) =>
        String(error),
      );
      if (typeof bytes === 'string') {
        checks.push({ name: manifest.name, problem: bytes });
        continue;
      }
      const figure = `${manifest.name}: ${bytes} B`;
      notes.push(Number.isFinite(budget.limitBytes) ? `${figure} of ${budget.limitBytes} B` : figure);
      const problem = bytes > budget.limitBytes ? `${figure}, more than ${budget.limitBytes} B` : undefined;
      checks.push({ name: manifest.name, problem });
    }
    return resultOf(checks, notes);
  },
};

async function bundledBytes(folder: string, name: string, external: readonly string[]): Promise<number> {
  const result = await build({
    stdin: { contents: `export * from '${name}'`, resolveDir: folder },
    bundle: true,
    minify: true,
    write: false,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    external: external.flatMap((one) => (one.includes('*') ? [one] : [one, `${one}/*`])),
    logLevel: 'silent',
  });
  const [file] = result.outputFiles;
  return gzipSync(file?.contents ?? '', { level: 9 }).byteLength;
}
