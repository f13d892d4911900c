import { existsSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { waitUntil } from '../../test-servers/src/wait-until.ts';
import { hostNode, isRunning, launch, pressCtrlC, readWhenThere } from './launched.ts';

interface Started {
  readonly pids: readonly number[];
  readonly folder: string;
}

const launcher = fileURLToPath(new URL('fixtures/launch.mjs', import.meta.url));

function start(mode: 'stay' | 'leave') {
  const notes = mkdtempSync(join(tmpdir(), 'notes-'));
  const { child, ended } = launch(hostNode, [launcher, notes, mode]);
  const started = () => readWhenThere<Started>(join(notes, 'started.json'));
  return { child, ended, started: () => waitUntil(started, { what: 'the start of the task' }) };
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

  it('leaves no process and no temporary folder after the launcher was killed', async () => {
    const { child, ended, started } = start('stay');
    const { pids, folder } = await started();
    child.kill('SIGKILL');
    await ended;
    await waitUntil(() => !pids.some(isRunning), { what: 'the end of all processes' });
    await waitUntil(() => !existsSync(folder), { what: 'the removal of the folder' });
  });

  it('leaves no process after npm and not its shell was killed', async () => {
    const notes = mkdtempSync(join(tmpdir(), 'notes-'));
    // npm runs a script in a shell that waits for it.
    const inShell = `"${hostNode}" "${launcher}" "${notes}" stay; exit $?`;
    const npm = `require('node:child_process').spawn('sh', ['-c', ${JSON.stringify(inShell)}], { stdio: 'inherit' })`;
    const { child } = launch(hostNode, ['-e', npm], { npm_lifecycle_event: 'demo' });
    const started = () => readWhenThere<Started>(join(notes, 'started.json'));
    const { pids, folder } = await waitUntil(started, { what: 'the start of the task' });
    child.kill('SIGKILL');
    await waitUntil(() => !pids.some(isRunning), { what: 'the end of all processes' });
    await waitUntil(() => !existsSync(folder), { what: 'the removal of the folder' });
  });

  it('fails when it ends well but leaves a process behind, which is ended', async () => {
    const { ended, started } = start('leave');
    const { exitCode, stderr } = await ended;
    const { pids, folder } = await started();
    expect(exitCode).toBe(1);
    expect(stderr).toContain(`left behind, ending it: ${pids[1]}`);
    // A killed process takes a moment to be gone.
    await waitUntil(() => !pids.some(isRunning), { what: 'the end of all processes' });
    await waitUntil(() => !existsSync(folder), { what: 'the removal of the folder' });
  });
});
