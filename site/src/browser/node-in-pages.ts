import { fileURLToPath } from 'node:url';

const file = (name: string) => fileURLToPath(new URL(name, import.meta.url));
const GLOBALS = ['setTimeout', 'setInterval', 'clearTimeout', 'clearInterval', 'setImmediate', 'process'];

/** Lets a page bundle `@locks/core` and `@locks/memory`, which are written for Node. */
export function nodeInPages() {
  return {
    name: 'node-in-pages',
    enforce: 'pre' as const,
    resolveId(source: string, importer: string | undefined) {
      if (!/\/(core|memory)\/dist\//.test(importer ?? '') || !source.startsWith('node:')) return null;
      return file(source === 'node:timers/promises' ? 'node-timers-promises.ts' : 'node-modules.ts');
    },
    transform(code: string, id: string) {
      if (!/\/packages\/(core|memory)\/dist\//.test(id)) return null;
      const own = ownImports(code);
      const globals = GLOBALS.filter((name) => !own.has(name)).join(', ');
      return {
        code: `import { ${globals} } from ${JSON.stringify(file('node-globals.ts'))};\n${code}`,
        map: null,
      };
    },
  };
}

/** The names that a bundled module imports from Node by itself: one of them may be that of a global. */
function ownImports(code: string): ReadonlySet<string> {
  const lists = [...code.matchAll(/^import \{ ([^}]*) \} from "node:/gm)].map(([, list = '']) => list);
  return new Set(lists.flatMap((list) => list.split(', ')).map((name) => name.split(' as ').at(-1) ?? ''));
}
