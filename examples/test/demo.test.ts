import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { waitUntil } from '@locks/test-servers';
import { describe, expect, it } from 'vitest';
import { type BackendName, backendNames, serverKindOf } from '../src/demo/backends.ts';

const MAIN = fileURLToPath(new URL('../src/demo/main.ts', import.meta.url));
const run = promisify(execFile);

// Servers that the step "servers" has reported as missing.
const missing = new Set(process.env['LOCKS_MISSING_SERVERS']?.split(','));
const isRunnable = (name: BackendName): boolean => !missing.has(String(serverKindOf(name)));

async function report<T>(...args: string[]): Promise<T> {
  try {
    const { stdout } = await run(process.execPath, [MAIN, ...args, '--json']);
    return JSON.parse(stdout) as T;
  } catch (error) {
    // The message of `execFile` has the command alone.
    const { stdout = '', stderr = '' } = error as { readonly stdout?: string; readonly stderr?: string };
    throw new Error(`The demo failed: ${stdout.replace(/\s+/g, ' ')}${stderr}`, { cause: error });
  }
}

interface StockReport {
  readonly ok: boolean;
  readonly unlocked: { readonly oversold: number };
  readonly locked: object;
}

interface OnceReport {
  readonly ok: boolean;
  readonly nights: readonly {
    readonly slot: string;
    readonly reports: readonly { readonly status: string }[];
  }[];
  readonly runs: number;
  readonly runsWithLockAlone: number;
}

interface LeaderReport {
  readonly ok: boolean;
  readonly ttlMs: number;
  readonly changes: readonly { readonly how: string; readonly failoverMs: number }[];
}

it.concurrent.each(backendNames.filter(isRunnable))(
  'oversells without the lock and never with it, on %s',
  { timeout: 60_000 },
  async (backend) => {
    const found = await report<StockReport>('--backend', backend, '--workers', '3', '--sales', '40');
    expect(found.ok).toBe(true);
    expect(found.unlocked.oversold).toBeGreaterThan(0);
    expect(found.locked).toMatchObject({ sold: 40, oversold: 0 });
  },
);

it.concurrent.each((['sqlite', 'memory', 'redis-ioredis'] as const).filter(isRunnable))(
  '--once: one run a night with the record, and more under a lock alone, on %s',
  { timeout: 60_000 },
  async (backend) => {
    const found = await report<OnceReport>('--once', '--nights', '2', '--backend', backend);
    expect(found).toMatchObject({ ok: true, runs: 2 });
    expect(found.runsWithLockAlone).toBeGreaterThan(2);
    expect(found.nights.map(({ slot }) => slot)).toEqual(['2020-01-01', '2020-01-02']);
    for (const { reports } of found.nights) {
      expect(reports.map(({ status }) => status).sort()).toEqual(['done-before', 'done-before', 'ran']);
    }
  },
);

it.concurrent.each((['sqlite', 'redis-node', 'postgres-lease'] as const).filter(isRunnable))(
  '--leader: the next one leads after a resignation and after each kill, on %s',
  { timeout: 60_000 },
  async (backend) => {
    const { ok, ttlMs, changes } = await report<LeaderReport>('--leader', '--backend', backend);
    expect(ok).toBe(true);
    expect(changes.map(({ how }) => how)).toEqual(['resign', 'kill', 'kill']);
    // The ttl is not waited for.
    expect(changes[0]?.failoverMs).toBeLessThan(ttlMs / 2);
    for (const { failoverMs } of changes) expect(failoverMs).toBeLessThan(ttlMs + 20_000);
  },
);

describe.runIf(process.platform === 'linux').concurrent('Ctrl-C', () => {
  it.each([['--once'], ['--leader']])(
    'leaves no process and no file of %s behind',
    { timeout: 60_000 },
    async (act) => {
      const folder = mkdtempSync(join(tmpdir(), 'demo-test-'));
      const child = spawn(process.execPath, [MAIN, act], {
        env: { ...process.env, TMPDIR: folder },
        stdio: ['ignore', 'ignore', 'inherit'],
      });
      const started = await waitUntil(
        () => {
          const pids = childrenOf(child.pid as number);
          return pids.length === 3 && readdirSync(folder).length > 0 ? pids : undefined;
        },
        { what: 'the three processes' },
      );
      child.kill('SIGINT');
      const [code] = (await once(child, 'exit')) as [number];
      expect(code).toBe(130);
      expect(readdirSync(folder)).toEqual([]);
      await waitUntil(() => !started.some(isAlive), {
        what: 'the end of the processes',
      });
      expect(readdirSync(folder)).toEqual([]);
    },
  );
});

function childrenOf(parent: number): string[] {
  return readdirSync('/proc').filter((name) => /^\d+$/.test(name) && statOf(name)?.parent === parent);
}

/** Whether the process runs; one that has ended and is not yet reaped does not. */
function isAlive(pid: string): boolean {
  const { state = 'X' } = statOf(pid) ?? {};
  return !/[ZX]/.test(state);
}

function statOf(pid: string): { readonly state: string; readonly parent: number } | undefined {
  try {
    // The second field, the name in parentheses, may contain anything.
    const [, state = '', parent] = /^.*\) (\S) (\d+)/s.exec(readFileSync(`/proc/${pid}/stat`, 'utf8')) ?? [];
    return { state, parent: Number(parent) };
  } catch {
    return undefined; // It has ended meanwhile.
  }
}

it.each([
  [['--backend', 'mongo'], 'mongo'],
  [['--workers', '1'], '--workers takes'],
  [['--sales', 'many'], '--sales takes'],
  [['--nonsense'], '--nonsense'],
  [['--once', '--leader'], 'either --once or --leader'],
  [['--once', '--workers', '3'], '--workers does not go with --once'],
  [['--nights', '3'], '--nights goes with --once'],
  [['--once', '--nights', '0'], '--nights takes'],
  [['--once', '--backend', 'postgres-advisory'], 'fencing tokens'],
  [['--leader', '--sales', '7'], '--sales does not go with --leader'],
  [['--leader', '--backend', 'memory'], 'memory'],
])('refuses %j with a reason, its usage and exit code 2', async (args, reason) => {
  const failure = await run(process.execPath, [MAIN, ...args]).catch((error: unknown) => error);
  const { stderr } = failure as { stderr: string };
  expect(failure).toMatchObject({ code: 2, stderr: expect.stringContaining('usage:') });
  expect(stderr.split('\n')[0]).toContain(reason);
});
