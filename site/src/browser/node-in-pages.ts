import { fileURLToPath } from 'node:url';

const file = (name: string) => fileURLToPath(new URL(name, import.meta.url));
const GLOBALS = 'setTimeout, setInterval, clearTimeout, clearInterval, setImmediate, process';

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
      return {
        code: `import { ${GLOBALS} } from ${JSON.stringify(file('node-globals.ts'))};\n${code}`,
        map: null,
      };
    },
  };
}
