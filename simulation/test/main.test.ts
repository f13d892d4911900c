import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';

const MAIN = join(import.meta.dirname, '../src/main.ts');

function simulate(...args: string[]) {
  return spawnSync(process.execPath, [MAIN, ...args], { encoding: 'utf8' });
}

test('a report has the figures of a run', () => {
  const folder = mkdtempSync(join(tmpdir(), 'simulate-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = join(folder, 'report.json');
  const { status, stdout } = simulate('--schedules', '5', '--seed', '9', '--json', file);
  expect(stdout).toContain('5 schedules from seed 9');
  expect(status).toBe(0);
  const report: unknown = JSON.parse(readFileSync(file, 'utf8'));
  expect(report).toMatchObject({ backend: 'rules', seed: 9, schedules: 5, expected: [], violations: [] });
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
])('%s ends with exit code 2 and the usage', (_, args) => {
  const { status, stderr } = simulate(...args);
  expect(status).toBe(2);
  expect(stderr).toContain('usage: simulate');
});
