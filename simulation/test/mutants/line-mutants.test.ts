import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { lineMutants } from '../../src/mutants/run-mutants.ts';
import { changed, loadedFile } from '../../src/process/source-change.ts';

const packages = join(import.meta.dirname, '../../../packages');

test.each(lineMutants.map((mutant) => [`${mutant.change.file}: ${mutant.says}`, mutant] as const))(
  'the line is there: %s',
  (_, { change }) => {
    const text = readFileSync(join(packages, loadedFile(change)), 'utf8');
    expect(changed(text, [change])).not.toBe(text);
  },
);
