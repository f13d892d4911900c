import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { isFree, waitUntil } from '../src/index.ts';

const program = fileURLToPath(new URL('./fixtures/hold-servers.ts', import.meta.url));

let temporary: string;
let child: ChildProcess | undefined;

interface Held {
  readonly port: number;
  readonly pid: number;
  readonly dir: string;
}

/** Starts the program in a process group of its own, as a terminal does. */
async function hold(way: string): Promise<Held> {
  const started = spawn(process.execPath, [program, way], {
    stdio: ['ignore', 'pipe', 'ignore'],
    env: { ...process.env, TMPDIR: temporary },
    detached: true,
  });
  child = started;
  const [line] = (await once(createInterface({ input: started.stdout }), 'line')) as [string];
  return JSON.parse(line) as Held;
}

async function leftBehind(): Promise<string[]> {
  const { stdout } = await promisify(execFile)('ps', ['-eo', 'pid,args']);
  return [...stdout.split('\n').filter((line) => line.includes(temporary)), ...(await readdir(temporary))];
}

async function nothingIsLeft(): Promise<void> {
  let left: string[] = [];
  const clean = async () => {
    left = await leftBehind();
    return left.length === 0;
  };
  await waitUntil(clean, { what: 'every process and file to be gone', timeoutMs: 5_000 }).catch(
    (error: unknown) => {
      throw new Error(`Left behind: ${left.join('\n')}`, { cause: error });
    },
  );
}

beforeEach(async () => {
  temporary = await mkdtemp(path.join(tmpdir(), 'locks hygiene '));
});

afterEach(async () => {
  if (child?.exitCode === null && child.signalCode === null) child.kill('SIGKILL');
  child = undefined;
  await rm(temporary, { recursive: true, force: true });
});

/** A process that ends loses its name before its sockets. */
async function untilFree(port: number): Promise<void> {
  await waitUntil(() => isFree(port), { what: `port ${port} to be free`, timeoutMs: 5_000 });
}

describe('nothing survives the process that started a server', () => {
  it.each(['end', 'exit', 'throw'])('when it ends by itself (%s)', async (way) => {
    const held = await hold(way);
    if (child?.exitCode === null) await once(child, 'exit');
    await nothingIsLeft();
    await untilFree(held.port);
  });

  it.each(['SIGKILL', 'SIGINT', 'SIGTERM', 'SIGHUP'] as const)('when it gets %s', async (signal) => {
    const held = await hold('wait');
    // Shows that the search would find both a surviving server and its directory.
    expect(await leftBehind()).toEqual(
      expect.arrayContaining([expect.stringMatching(`${held.pid} .*redis-server`)]),
    );
    expect(await readdir(temporary)).toHaveLength(1);
    child?.kill(signal);
    await nothingIsLeft();
    await untilFree(held.port);
  });

  it('when Ctrl-C goes to its whole process group', async () => {
    const held = await hold('wait');
    process.kill(-(child?.pid ?? Number.NaN), 'SIGINT');
    await nothingIsLeft();
    await untilFree(held.port);
  });

  it('when its server was paused', async () => {
    const held = await hold('paused');
    child?.kill('SIGKILL');
    await nothingIsLeft();
    await untilFree(held.port);
  });

  it('when it is killed at any moment of starting servers', async () => {
    for (let round = 0; round < 25; round += 1) {
      await hold('loop');
      await sleep(round * 5);
      child?.kill('SIGKILL');
      await nothingIsLeft();
    }
  });
});

describe('a server whose program ends', () => {
  it('keeps no program alive', async () => {
    await hold('end');
    if (child?.exitCode === null) await once(child, 'exit');
    expect(child?.exitCode).toBe(0);
  });
});
