import { existsSync, globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { transform } from 'esbuild';
import { defineConfig, type Rolldown, type UserConfig } from 'tsdown';

interface Manifest {
  readonly name: string;
  readonly exports: Readonly<Record<string, string | { readonly default: string }>>;
}

const folder = process.cwd();
const { name, exports } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Manifest;

/** `./dist/doctor/index.js` is built from `src/doctor/index.ts`, and `./dist/conformance/index.js` from `conformance/index.ts`. */
const entryPoints = Object.values(exports).flatMap((target) =>
  typeof target === 'string' ? [] : target.default.replace(/^\.\/dist\/(.*)\.js$/, '$1'),
);
/** Programs that a package runs in processes of their own. */
const programs = globSync('{src,conformance}/**/{main,locks-renewal-thread}.ts', { cwd: folder }).map(
  (file) => file.replace(/^src\/|\.ts$/g, ''),
);

const common: UserConfig = {
  cwd: folder,
  tsconfig: join(folder, 'tsconfig.build.json'),
  platform: 'node',
  // The oldest Node that the packages support.
  target: 'node20.19',
  // Names without a hash: a rebuild leaves no stale file that something still imports.
  hash: false,
  // `.js` and `.cjs`, since every package is of type `module`.
  fixedExtension: false,
  // What is shipped can be read as it is; maps and sources would double it.
  sourcemap: false,
  dts: { sourcemap: false },
  logLevel: 'warn',
  // No comments with the paths of sources, which are not shipped.
  inputOptions: { checks: { pluginTimings: false }, experimental: { attachDebugInfo: 'none' } },
};

/** Without comments the conformance suite, most of what core weighs, is 3 kB less to download. */
const suiteWithoutComments: Rolldown.Plugin = {
  name: 'suite-without-comments',
  async renderChunk(code, chunk) {
    if (chunk.name !== 'run-suite') return null;
    return { code: (await transform(code, { legalComments: 'none' })).code, map: null };
  },
};

/** The clauses that docstrings of all packages cite. */
const copy = name === '@locks/core' ? [{ from: '../../docs/spec.md', to: 'dist' }] : [];

/** Every package is built as ES modules and as CommonJS: docs/adr/0002-both-module-formats.md. */
export default defineConfig([
  {
    ...common,
    format: 'esm',
    copy,
    plugins: [suiteWithoutComments],
    entry: entries([...entryPoints, ...programs]),
  },
  // Who reads the code reads the ES modules: a second copy of the comments would be a tenth of the package of core.
  ...(entryPoints.length > 0
    ? [
        {
          ...common,
          format: 'cjs',
          entry: entries(entryPoints),
          outputOptions: { comments: false, exports: 'named' },
        } as const,
      ]
    : []),
]);

function entries(names: readonly string[]): Record<string, string> {
  const sourceOf = (name: string) =>
    existsSync(join(folder, `src/${name}.ts`)) ? `src/${name}.ts` : `${name}.ts`;
  return Object.fromEntries(names.map((name) => [name, sourceOf(name)]));
}
