// Own code: dependency-cruiser takes 3.7 s of processor time for all packages, this .2 s, and needs the same table.
import { globSync, readFileSync } from 'node:fs';
import { dirname, join, matchesGlob } from 'node:path';
import { LAYERS } from '../layers.ts';
import type { Step } from '../step.ts';
import { resultOf } from '../step.ts';
import { publishedPackages } from '../workspace.ts';

/** That no imports form a circle is a rule of oxlint, in the step `lint`. */
export const layersStep: Step = {
  name: 'layers',
  about:
    'no file imports from a higher layer of its package (scripts/checks/layers.ts), nor from outside of the product: the suite. A long file says why it is one',
  kind: 'static',
  async run() {
    return resultOf(
      publishedPackages.map(({ path, folder, shortName }) => ({
        name: path,
        problem: problemOfLayers(join(folder, 'src'), LAYERS[shortName] ?? []),
      })),
    );
  },
};

/** This package examines locks with the means of the suite: its proxies, processes and clocks. */
const USES_THE_SUITE = 'packages/prove/';

/** In lines. */
const LONG = 300;
const NO_REASON = `more than ${LONG} lines, and its first one does not say "// One file, since …"`;

function isLongWithoutReason(file: string): boolean {
  const text = readFileSync(file, 'utf8');
  return text.split('\n').length > LONG + 1 && !/^\/\/ (One file|Generated)/.test(text);
}

function problemOfLayers(folder: string, layers: readonly (readonly string[])[]): string | undefined {
  const files = globSync('**/*.ts', { cwd: folder }).filter((file) => !/^generated|\.test\.ts$/.test(file));
  const layerOf = (file: string) => {
    const named = layers.findIndex((globs) => globs.includes(file));
    return named >= 0 ? named : layers.findIndex((globs) => globs.some((glob) => matchesGlob(file, glob)));
  };
  const problems = files.flatMap((file) => {
    const layer = layerOf(file);
    if (layer < 0) return [`${file} is in no layer`];
    return importsOf(folder, file).flatMap((imported) => {
      if (imported.startsWith('..') || (/\/conformance\b/.test(imported) && !folder.includes(USES_THE_SUITE)))
        return [`${file} imports ${imported}, which is no part of the product`];
      const isHigher = files.includes(imported) && layerOf(imported) < layer;
      return isHigher ? [`${file} imports ${imported}, which is in a higher layer`] : [];
    });
  });
  problems.push(
    ...files.filter((file) => isLongWithoutReason(join(folder, file))).map((file) => `${file}: ${NO_REASON}`),
  );
  const unused = layers.flat().filter((glob) => !files.some((file) => matchesGlob(file, glob)));
  problems.push(...unused.map((glob) => `no file matches ${glob}`));
  return problems.length > 0 ? problems.join('\n') : undefined;
}

/** What a file imports or exports from files of its package, by their paths in `src/`, and from `@locks/core`: types too. */
function importsOf(folder: string, file: string): string[] {
  const code = readFileSync(join(folder, file), 'utf8').replaceAll(/^ *(\/\/|\*).*$/gm, '');
  return [...code.matchAll(/\b(?:from|import\(|import) ?'((?:\.|@locks\/core)[^']*)'/g)].map(
    ([, path = '']) => (path.startsWith('.') ? join(dirname(file), path) : path),
  );
}
