import { createRequire } from 'node:module';
import { join } from 'node:path';
import { readFile } from 'node:fs/promises';
import { compileFunction } from 'node:vm';
import type * as core from '@locks/core';
import type * as quorum from '@locks/core/quorum';
import type * as redis from '@locks/redis-protocol';
import type * as rules from '@locks/core/rules';
import { build, type Plugin } from 'esbuild';
import { LuaScripts } from '../redis/lua-scripts.ts';
import type { BackendKind } from '../workload/plan.ts';
import { globalsOf, modulesOf } from './process-globals.ts';
import type { SimulatedProcess } from './simulated-process.ts';

/** Core, as one simulated process has loaded them. */
export interface LoadedLocks {
  readonly createLocks: typeof core.createLocks;
  readonly quorumBackend: typeof quorum.quorumBackend;
  readonly createRedisBackend: typeof redis.createRedisBackend;
  readonly LockRules: typeof rules.LockRules;
}

/** A change of one source file, for a test that plants an error. */
export interface SourceChange {
  /** Relative to `packages/`. */
  readonly file: string;
  readonly from: string;
  readonly to: string;
}

const packages = join(import.meta.dirname, '../../../packages');
const CORE = `export { createLocks } from '@locks/core'; export { LockRules } from '@locks/core/rules';`;
/** A process loads what its backend needs: the less code, the more runs in a second. */
const ENTRIES: Readonly<Record<BackendKind, string>> = {
  rules: CORE,
  redis: `${CORE} export { createRedisBackend } from '@locks/redis-protocol';`,
  quorum: `${CORE} export { quorumBackend } from '@locks/core/quorum';`,
};
const PARAMETERS = [
  'module',
  'require',
  'globalThis',
  'process',
  'performance',
  'Date',
  'Math',
  'setTimeout',
  'clearTimeout',
  'setInterval',
  'clearInterval',
  'setImmediate',
  'clearImmediate',
];

/** The sources of core and of the Redis protocol, compiled once; each simulated process evaluates them for itself. */
export class LockCode {
  readonly #evaluate: (...values: unknown[]) => void;
  #server: LoadedLocks | undefined;

  /** What runs the scripts of a simulated Redis. */
  readonly lua: LuaScripts | undefined;

  private constructor(text: string, lua: LuaScripts | undefined) {
    this.lua = lua;
    this.#evaluate = compileFunction(text, PARAMETERS, { filename: 'simulated-process.cjs' }) as (
      ...values: unknown[]
    ) => void;
  }

  /** @param changes - none: the sources as they are */
  static async load(backend: BackendKind, changes: readonly SourceChange[] = []): Promise<LockCode> {
    const { outputFiles } = await build({
      stdin: { contents: ENTRIES[backend], resolveDir: import.meta.dirname, sourcefile: 'entry.ts' },
      bundle: true,
      write: false,
      format: 'cjs',
      platform: 'node',
      logLevel: 'silent',
      target: 'node24',
      plugins: [sources(changes)],
    });
    const lua = backend === 'redis' ? await LuaScripts.load() : undefined;
    return new LockCode(outputFiles[0]?.text ?? '', lua);
  }

  /** The code as a store has loaded it, once for all runs: it has no state and reads no time. */
  serverCode(process: () => SimulatedProcess): LoadedLocks {
    return (this.#server ??= this.loadInto(process()));
  }

  /** Evaluates the code with the clocks, timers and random numbers of a process. */
  loadInto(process: SimulatedProcess): LoadedLocks {
    const module = { exports: {} };
    const globals = globalsOf(process);
    const modules = modulesOf(process);
    const require = (name: string): unknown => modules[name] ?? nodeRequire(name);
    const values: Readonly<Record<string, unknown>> = {
      ...globals,
      module,
      require,
      globalThis: { ...globals },
    };
    this.#evaluate(...PARAMETERS.map((name) => values[name]));
    return module.exports as LoadedLocks;
  }
}

const nodeRequire = createRequire(import.meta.url);

/** Finds the sources behind the names of the packages, and applies the changes of a planted error. */
function sources(changes: readonly SourceChange[]): Plugin {
  return {
    name: 'sources',
    setup(bundle) {
      bundle.onResolve({ filter: /^@locks\// }, ({ path }) => {
        const [, name = '', ...entry] = path.split('/');
        return { path: join(packages, name, 'src', ...entry, 'index.ts') };
      });
      for (const file of new Set(changes.map((change) => change.file))) {
        const path = join(packages, file);
        bundle.onLoad({ filter: new RegExp(`${file.replaceAll(/[.]/g, '\\$&')}$`) }, async () => {
          let contents = await readFile(path, 'utf8');
          for (const { from, to } of changes.filter((change) => change.file === file)) {
            if (!contents.includes(from)) throw new Error(`${file} has no ${JSON.stringify(from)}`);
            contents = contents.replace(from, () => to);
          }
          return { contents, loader: 'ts' };
        });
      }
    },
  };
}
