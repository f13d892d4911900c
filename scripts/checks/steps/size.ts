import { analyzeMetafile, build } from 'esbuild';
import { gzipSync } from 'node:zlib';
import type { Step } from '../step.ts';
import { resultOf } from '../step.ts';
import { publishedPackages } from '../workspace.ts';

interface Budget {
  readonly limitBytes: number;
  /** Modules that the user has anyway are left out of the bundle. */
  readonly external: readonly string[];
}

const kilobyte = 1_000;
/** Why there are budgets: docs/adr/0006-size-budgets.md. */
const budgets: Readonly<Record<string, Budget>> = {
  core: { limitBytes: 18.6 * kilobyte, external: [] },
  'redis-ioredis': { limitBytes: 20.4 * kilobyte, external: ['@locks/core', 'ioredis'] },
  'redis-node': { limitBytes: 20.4 * kilobyte, external: ['@locks/core', 'redis', '@redis/*'] },
};

/** What an application carries: the main entry bundled, minified and gzipped. */
export const sizeStep: Step = {
  name: 'size',
  about: 'the main entries stay within their budgets, minified and gzipped',
  kind: 'static',
  async run() {
    const checks = [];
    const notes = [];
    // A package of commands alone is in nobody's bundle.
    const libraries = publishedPackages.filter(({ manifest }) => manifest.exports?.['.'] !== undefined);
    for (const { shortName, folder, manifest } of libraries) {
      const peers = Object.keys(manifest.peerDependencies ?? {});
      const budget = budgets[shortName] ?? { limitBytes: Infinity, external: ['@locks/core', ...peers] };
      const { bytes, parts, error } = await bundle(folder, manifest.name, budget.external);
      if (error !== undefined) {
        checks.push({ name: manifest.name, problem: error });
        continue;
      }
      const figure = `${manifest.name}: ${bytes} B`;
      notes.push(Number.isFinite(budget.limitBytes) ? `${figure} of ${budget.limitBytes} B` : figure);
      const problem = bytes > budget.limitBytes ? `more than ${budget.limitBytes} B\n${parts}` : undefined;
      checks.push({ name: manifest.name, problem });
    }
    return resultOf(checks, notes);
  },
};

interface Bundled {
  readonly bytes: number;
  /** Which files take how much of it, before gzip. */
  readonly parts: string;
  readonly error?: string;
}

async function bundle(folder: string, name: string, external: readonly string[]): Promise<Bundled> {
  try {
    const { outputFiles, metafile } = await build({
      stdin: { contents: `export * from '${name}'`, resolveDir: folder },
      bundle: true,
      minify: true,
      write: false,
      metafile: true,
      format: 'esm',
      platform: 'node',
      target: 'node20',
      external: external.flatMap((one) => (one.includes('*') ? [one] : [one, `${one}/*`])),
      logLevel: 'silent',
    });
    const bytes = gzipSync(outputFiles[0]?.contents ?? '', { level: 9 }).byteLength;
    return { bytes, parts: await analyzeMetafile(metafile) };
  } catch (error) {
    return { bytes: 0, parts: '', error: String(error) };
  }
}
