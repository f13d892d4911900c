import { existsSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { hostNode, isRunning, launch, pressCtrlC, readWhenThere, waitUntil } from './launched.ts';

interface Started {
  readonly pids: readonly number[];
  readonly folder: string;
}

const launcher = fileURLToPath(new URL('fixtures/launch.mjs', import.meta.url));

function start(mode: 'stay' | 'leave') {
  const notes = mkdtempSync(join(tmpdir(), 'notes-'));
  const { child, ended } = launch(hostNode, [launcher, notes, mode]);
  const started = () => readWhenThere<Started>(join(notes, 'started.json'));
  return { child, ended, started: () => waitUntil('the start of the task', started) };
}

describe.concurrent('a task that is run by the launcher', () => {
  it.each([
    { how: 'Ctrl-C, which the whole group gets', send: pressCtrlC, exitCode: 130 },
    { how: 'SIGINT to the launcher alone', send: (child) => child.kill('SIGINT'), exitCode: 130 },
    { how: 'SIGTERM to the launcher alone', send: (child) => child.kill('SIGTERM'), exitCode: 143 },
  ] satisfies {
    how: string;
    send: typeof pressCtrlC | ((child: Parameters<typeof pressCtrlC>[0]) => boolean);
    exitCode: number;
  }[])('leaves no process and no temporary folder after $how', async ({ send, exitCode }) => {
    const { child, ended, started } = start('stay');
    const { pids, folder } = await started();
    send(child);
    expect(await ended).toMatchObject({ exitCode });
    expect(pids.filter(isRunning)).toEqual([]);
    expect(existsSync(folder)).toBe(false);
  });

  it('fails when it ends well but leaves a process behind, which is ended', async () => {
    const { ended, started } = start('leave');
    const { exitCode, stderr } = await ended;
    const { pids, folder } = await started();
    expect(exitCode).toBe(1);
    expect(stderr).toContain(`left behind, ending it: ${pids[1]}`);
    expect(pids.filter(isRunning)).toEqual([]);
    expect(existsSync(folder)).toBe(false);
  });
});
