import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../launcher/root.mjs';
import { workspacePackages } from './workspace.ts';

export interface Generator {
  readonly name: string;
  /** With `--check` the program compares, otherwise it writes. */
  readonly file: string;
}

/** The programs that embed the `.lua` and `.sql` files of packages into their source, that write dashboards and alerts, pictures of benchmarks, and examples into documents. */
export const generators: readonly Generator[] = workspacePackages
  .map(({ path, folder }) => ({ name: path, file: join(folder, 'generate.mjs') }))
  .filter(({ file }) => existsSync(file));

/** Renders docs/compatibility.md and docs/generated/compatibility-cases.md from the reports of the conformance suite. */
export const matrixGenerator: Generator = {
  name: 'docs/compatibility.md',
  file: join(root, 'contract-tests/src/render-matrix.ts'),
};
