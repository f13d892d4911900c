import {
  type ConformanceCase,
  type Outcome,
  runCase,
  type CaseContext,
  startHarness,
} from '@locks/core/conformance';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import harness from '../src/harnesses/sqlite.ts';

type Child = Awaited<ReturnType<CaseContext['child']>>;

describe('the processes of a suite', () => {
  let started: { teardown(): Promise<void> };
  beforeAll(async () => {
    started = await startHarness(harness);
  });
  afterAll(() => started.teardown());

  it('are used again by the next case, which finds nothing of the former case', async () => {
    const name = `kept ${process.pid}`;
    let id = 0;
    const first = await pidIn('passed', async (child) => {
      ({ id } = await child.acquire(name));
    });
    const second = await pidIn('passed', async (child) => {
      await expect(child.read(id)).rejects.toThrow(`There is no lease ${id} in this process`);
      expect(await child.tryAcquire(name)).toBeDefined();
    });
    expect(second).toBe(first);
  });

  it.each<[string, Outcome, (child: Child) => unknown]>([
    ['was frozen', 'passed', (child) => [child.freeze(), child.thaw()]],
    ['was killed', 'passed', (child) => child.kill()],
    ['still waits', 'passed', waitForItself],
    ['was to end without help', 'passed', (child) => child.closeAndLinger()],
    ['belonged to a case that failed', 'failed', () => Promise.reject(new Error('on purpose'))],
  ])('are not used again: one that %s', async (_, outcome, use) => {
    const first = await pidIn(outcome, use);
    const second = await pidIn('passed', () => undefined);
    expect(second).not.toBe(first);
    expect(isAlive(first)).toBe(false);
  });

  it('end with the suite, the idle ones too', async () => {
    const pid = await pidIn('passed', () => undefined);
    expect(isAlive(pid)).toBe(true);
    await started.teardown();
    expect(isAlive(pid)).toBe(false);
  });
});

/** Runs a case with one process, and gives the id of that process. */
async function pidIn(outcome: Outcome, use: (child: Child) => unknown): Promise<number> {
  let pid = 0;
  const testCase: ConformanceCase = {
    id: 'exclusion/of-a-process',
    clause: '§1.1',
    title: 'uses a process',
    async run(context) {
      const child = await context.child();
      ({ pid } = child);
      await use(child);
    },
  };
  const result = await runCase(testCase, harness, 1);
  expect(result, result.reason).toMatchObject({ outcome });
  return pid;
}

async function waitForItself(child: Child): Promise<void> {
  await child.acquire(`waits ${process.pid}`);
  child.acquire(`waits ${process.pid}`, { waitMs: 60_000 }).catch(() => undefined);
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
