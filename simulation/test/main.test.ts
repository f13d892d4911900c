import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';

const MAIN = join(import.meta.dirname, '../src/main.ts');

function simulate(...args: string[]) {
  return spawnSync(process.execPath, [MAIN, ...args], { encoding: 'utf8' });
}

function fileIn(name: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'simulate-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return join(folder, name);
}

/** A newcomer overtakes the queue. */
const OVERTAKES = {
  file: 'core/src/rules/lock-rules.ts',
  from: 'return this.#queue.length === 0 && this.fits(mode);',
  to: 'return this.fits(mode);',
};

test('a run that breaks a promise ends with exit code 1, and is in the report', () => {
  const plant = fileIn('plant.json');
  const file = fileIn('report.json');
  writeFileSync(plant, JSON.stringify(OVERTAKES));
  const run = simulate('--schedules', '300', '--seed', '1', '--plant', plant, '--json', file);
  expect(run.status).toBe(1);
  expect(run.stdout).toContain('§7.1 violated');
  const report = JSON.parse(readFileSync(file, 'utf8')) as { violations: { seed: number; clause: string }[] };
  const [violation] = report.violations;
  expect(violation?.clause).toBe('§7.1');
  const seed = String(violation?.seed);
  const replay = simulate('--replay', seed, '--plant', plant);
  expect(replay.status).toBe(1);
  expect(replay.stdout).toContain('§7.1 violated');
  // The same seed without the error breaks nothing.
  expect(simulate('--replay', seed).status).toBe(0);
});

test('a report has the figures of a run', () => {
  const file = fileIn('report.json');
  const { status, stdout } = simulate('--schedules', '5', '--seed', '9', '--json', file);
  expect(stdout).toContain('5 schedules from seed 9');
  expect(status).toBe(0);
  const report: unknown = JSON.parse(readFileSync(file, 'utf8'));
  expect(report).toMatchObject({ backend: 'rules', seed: 9, schedules: 5, expected: [], violations: [] });
});

test('the figures of runs add up in a file', () => {
  const file = fileIn('figures.json');
  writeFileSync(file, JSON.stringify({ earlier: 7, backends: {} }));
  for (const seed of ['9', '14']) simulate('--schedules', '5', '--seed', seed, '--add', file);
  const figures: unknown = JSON.parse(readFileSync(file, 'utf8'));
  expect(figures).toMatchObject({ earlier: 7, backends: { rules: { schedules: 10 } } });
});

test('a replay prints every event of a seed, the same each time', () => {
  const first = simulate('--backend', 'quorum', '--replay', '3');
  expect(first.stdout).toContain('seed 3 breaks no promise');
  expect(first.stdout).toContain('store2');
  expect(simulate('--backend', 'quorum', '--replay', '3').stdout).toBe(first.stdout);
});

test.each([
  ['an unknown option', ['--bogus']],
  ['an unknown backend', ['--backend', 'paper']],
  ['a seed that is no number', ['--seed', 'x']],
  ['no schedules', ['--schedules', '0']],
  ['a planted error that is no file', ['--plant', '/no/such/file']],
])('%s ends with exit code 2 and the usage', (_, args) => {
  const { status, stderr } = simulate(...args);
  expect(status).toBe(2);
  expect(stderr).toContain('usage: simulate');
});
