import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { harnessNames } from './harness-names.ts';

/** Harnesses that other tests run: `memory-timing.test.ts`, and the mutants. */
const TESTED_ELSEWHERE: readonly string[] = ['memory-coarse', 'memory-slow', 'memory-tcp'];

const FOLDER = fileURLToPath(new URL('../test/.conformance/', import.meta.url));

/** Writes a test file for each harness: vitest runs files beside each other, and selects, excludes and repeats them. */
export function writeConformanceTests(): void {
  const names = harnessNames.filter((name) => !TESTED_ELSEWHERE.includes(name));
  mkdirSync(FOLDER, { recursive: true });
  for (const file of readdirSync(FOLDER)) {
    if (!names.includes(file.replace('.test.ts', ''))) rmSync(join(FOLDER, file));
  }
  for (const name of names) {
    const file = join(FOLDER, `${name}.test.ts`);
    // A file that is right already is not touched: another run may be reading it.
    if (!existsSync(file) || readFileSync(file, 'utf8') !== testOf(name)) writeFileSync(file, testOf(name));
  }
}

function testOf(name: string): string {
  return [
    "import { testConformance } from '../conformance.ts';",
    `import harness from '../../src/harnesses/${name}.ts';`,
    '',
    `testConformance('${name}', harness);`,
    '',
  ].join('\n');
}
