import { readFileSync, readdirSync } from 'node:fs';
import { basename, join } from 'node:path';

const folder = join(import.meta.dirname, '../../../contract-tests/src/mutants');

/** A mutant of the suite, as the simulation runs it. */
export interface SuiteMutantEntry {
  readonly name: string;
  readonly says: string;
  readonly unseen: string | undefined;
  /** Its file, without the ending. */
  readonly group: string;
}

/** The mutants of the suite that change a backend in memory. */
export const mutants: readonly SuiteMutantEntry[] = readdirSync(folder).flatMap((file) => {
  const text = readFileSync(join(folder, file), 'utf8');
  const entries = text.matchAll(/^    name: '([\w-]+)',\n    says:\s+(['"])(.*)\2,\n    host: 'memory',/gm);
  return [...entries].map(([, name = '', , says = '']) => ({
    name,
    says,
    unseen: undefined,
    group: basename(file, '.ts'),
  }));
});
