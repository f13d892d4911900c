import { fork } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import nodeModule from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { CallableProcess, startProcess } from '../../../conformance/process/callable-process.ts';
import type { ServedMethods } from '../../fixtures/served-methods.ts';

const MAIN = new URL('../../fixtures/served-methods.ts', import.meta.url);

describe('a process whose methods can be called', () => {
  it('runs them there, and gives their results and errors', async () => {
    await using started = await startProcess<ServedMethods>(MAIN);
    expect(await Promise.all([started.call.add(1n, 2n), started.call.add(3n, 4n)])).toEqual([3n, 7n]);
    const error = { message: 'out of paper', code: 'E_PAPER', reason: 'tray 2' };
    await expect(started.call.fail()).rejects.toMatchObject(error);
    expect(started.isUsable).toBe(true);
  });

  it('that ends rejects the calls that it has not answered, and those that come later', async () => {
    await using started = await startProcess<ServedMethods>(MAIN);
    const unanswered = started.call.hang();
    expect(started.isUsable).toBe(false);
    const rejected = expect(unanswered).rejects.toThrow('SIGKILL');
    await started.kill();
    await rejected;
    await expect(started.call.add(1n, 2n)).rejects.toThrow();
  });

  it('is killed when a call takes longer than its limit', async () => {
    const child = fork(MAIN, { execArgv: [], serialization: 'advanced' });
    await using limited = new CallableProcess<ServedMethods>(child, 500);
    await expect(limited.call.hang()).rejects.toThrow('SIGKILL');
  });

  it.runIf('flushCompileCache' in nodeModule)(
    'keeps what it has compiled for the next one, also where it is killed',
    async () => {
      const cache = mkdtempSync(join(tmpdir(), 'compiled-'));
      const env = { ...process.env, NODE_COMPILE_CACHE: cache };
      const started = new CallableProcess(fork(MAIN, { execArgv: [], serialization: 'advanced', env }));
      await started.ready();
      await started.kill();
      const files = readdirSync(cache, { recursive: true, withFileTypes: true }).filter((one) =>
        one.isFile(),
      );
      rmSync(cache, { recursive: true });
      expect(files.length).toBeGreaterThan(1);
    },
  );

  it('that cannot make its methods is not started', async () => {
    await expect(startProcess(MAIN, ['broken'])).rejects.toThrow('no ink');
  });

  it('is frozen, thawed and killed while it is frozen', async () => {
    await using started = await startProcess<ServedMethods>(MAIN);
    started.freeze();
    const sum = started.call.add(1n, 1n);
    expect(await Promise.race([sum, new Promise((resolve) => setTimeout(resolve, 200, 'nothing'))])).toBe(
      'nothing',
    );
    started.thaw();
    expect(await sum).toBe(2n);
    started.freeze();
    await started.kill();
  });
});
