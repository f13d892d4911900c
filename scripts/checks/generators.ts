import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../launcher/root.mjs';
import { workspacePackages } from './workspace.ts';

export interface Generator {
  readonly name: string;
  /** With `--check` the program compares, otherwise it writes. */
  readonly file: string;
}

/** Writes the sentences that documents share, their tables of stores, and the counts of the track record. */
export const documentsGenerator: Generator = {
  name: 'documents',
  file: join(root, 'scripts/checks/documents/generate.ts'),
};

/** The programs that embed the `.lua` and `.sql` files of packages into their source, that write dashboards and alerts, pictures of benchmarks, and examples and shared sentences into documents. */
export const generators: readonly Generator[] = [
  ...workspacePackages
    .map(({ path, folder }) => ({ name: path, file: join(folder, 'generate.mjs') }))
    .filter(({ file }) => existsSync(file)),
  documentsGenerator,
];

/** Renders docs/compatibility.md and contract-tests/generated/matrix.json from the reports of the conformance suite. */
export const matrixGenerator: Generator = {
  name: 'docs/compatibility.md',
  file: join(root, 'contract-tests/src/render-matrix.ts'),
};
