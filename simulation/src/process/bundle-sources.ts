import { build, type Plugin } from 'esbuild';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { changed, loadedFile, type SourceChange } from './source-change.ts';

export const PACKAGES = join(import.meta.dirname, '../../../packages');
const RECORD_STATEMENTS = join(import.meta.dirname, '../mysql/record-statements.ts');

/** Makes one CommonJS module of sources of the packages. @param changes - errors that are planted; none: the sources as they are */
export async function bundleSources(entry: string, changes: readonly SourceChange[]): Promise<string> {
  const { outputFiles } = await build({
    stdin: { contents: entry, resolveDir: import.meta.dirname, sourcefile: 'entry.ts' },
    bundle: true,
    write: false,
    format: 'cjs',
    platform: 'node',
    logLevel: 'silent',
    target: 'node24',
    external: ['mysql2', 'etcd3', 'pg'],
    // The client of ZooKeeper reads its messages' layout from beside it.
    define: {
      'import.meta.url': JSON.stringify('file:///simulated/process.mjs'),
      __dirname: JSON.stringify(join(PACKAGES, 'zookeeper/node_modules/node-zookeeper-client/lib/jute')),
    },
    plugins: [sources(changes)],
  });
  return outputFiles[0]?.text ?? '';
}

/** Finds the sources behind the names of the packages, and applies the changes of a planted error. */
function sources(changes: readonly SourceChange[]): Plugin {
  return {
    name: 'sources',
    setup(bundle) {
      bundle.onResolve({ filter: /^@locks\// }, ({ path }) => {
        const [, name = '', ...entry] = path.split('/');
        const source = join(PACKAGES, name, 'src', ...entry);
        const file =
          entry.length > 0 && existsSync(`${source}.ts`) ? `${source}.ts` : join(source, 'index.ts');
        return { path: file };
      });
      // In place of its SQL, `@locks/mysql` sends commands to a store of records.
      bundle.onResolve({ filter: /\/mysql-statements\.ts$/ }, ({ importer }) =>
        importer === RECORD_STATEMENTS ? undefined : { path: RECORD_STATEMENTS },
      );
      for (const file of new Set(changes.map(loadedFile))) {
        const path = join(PACKAGES, file);
        bundle.onLoad({ filter: new RegExp(`${file.replaceAll(/[.]/g, '\\$&')}$`) }, async () => ({
          contents: changed(
            await readFile(path, 'utf8'),
            changes.filter((change) => loadedFile(change) === file),
          ),
          loader: 'ts',
        }));
      }
    },
  };
}
