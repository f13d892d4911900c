import { existsSync } from 'node:fs';
import { expect, it } from 'vitest';
import { inBackground, runCommand } from '../checks/command.ts';
import { runSteps } from '../checks/run-steps.ts';
import type { Step, StepResult } from '../checks/step.ts';

const context = { missing: new Set<never>(), testArguments: [], repeats: true };
const PASSED: StepResult = { passed: 1, failed: 0, output: '' };

function event(): { readonly come: Promise<void>; tell(): void } {
  let tell = (): void => undefined;
  const come = new Promise<void>((resolve) => (tell = resolve));
  return { come, tell };
}

function step(name: string, kind: Step['kind'], run: () => Promise<StepResult>): Step {
  return { name, about: '', kind, run };
}

/** What began and ended, in this order. */
async function eventsOf(steps: readonly Step[]): Promise<readonly string[]> {
  const events: string[] = [];
  await runSteps(steps, context, {
    started: ({ name }) => events.push(`${name} begins`),
    ended: ({ name }) => events.push(`${name} ends`),
  });
  return events;
}

it('static steps run in the pauses of those that run alone, and these one by one after the timed ones', async () => {
  const [checks, measures] = [event(), event()];
  const events = await eventsOf([
    step('first', 'alone', async () => {
      measures.tell();
      await checks.come;
      return PASSED;
    }),
    step('second', 'alone', async () => PASSED),
    step('waits', 'timed', async () => PASSED),
    step('check', 'static', async () => {
      await measures.come;
      checks.tell();
      return PASSED;
    }),
  ]);
  expect(events.filter((one) => !one.startsWith('check'))).toEqual([
    'waits begins',
    'waits ends',
    'first begins',
    'first ends',
    'second begins',
    'second ends',
  ]);
});

it('a timed step is repeated when all others have ended', async () => {
  const failed: StepResult = { ...PASSED, failed: 1, again: async () => PASSED };
  const events = await eventsOf([
    step('waits', 'timed', async () => failed),
    step('measures', 'alone', async () => PASSED),
    step('check', 'static', async () => PASSED),
  ]);
  expect(events.slice(-2)).toEqual(['waits begins', 'waits ends']);
  expect(events).toHaveLength(8);
});

it.runIf(existsSync('/proc/self/autogroup'))(
  'a command in the background gives way to other sessions too, as those of servers are',
  async () => {
    const untilNice = 'until grep " nice [1-9]" /proc/self/autogroup; do sleep 0.01; done';
    const gaveWay = await inBackground(
      () => runCommand('sh', ['-c', untilNice], { limitMs: 10_000 }),
      () => true,
    );
    expect(gaveWay.ok).toBe(true);
    const { stdout } = await inBackground(
      () => runCommand('sh', ['-c', 'sleep 0.1; cat /proc/self/autogroup']),
      () => false,
    );
    const { stdout: own } = await runCommand('sh', ['-c', 'cat /proc/self/autogroup']);
    expect(stdout).toBe(own);
  },
);
