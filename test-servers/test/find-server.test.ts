import { spawnSync } from 'node:child_process';
import { mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { ensureServers } from '../install.mjs';
import { findServer, startRedis } from '../src/index.ts';

const installer = fileURLToPath(new URL('../install.mjs', import.meta.url));
const advice =
  /apt-get install -y --no-install-recommends redis-server redis-sentinel.*brew install redis.*REDIS_URL/;

let empty: string;

beforeEach(async () => {
  empty = await mkdtemp(path.join(tmpdir(), 'locks no servers '));
});

afterEach(async () => {
  vi.unstubAllEnvs();
  await rm(empty, { recursive: true, force: true });
});

describe('finding a server', () => {
  it('looks in PATH and in the usual places', () => {
    vi.stubEnv('PATH', empty);
    expect(path.basename(findServer('redis-server'))).toBe('redis-server');
  });

  it('says what to install or to set when it is missing', async () => {
    expect(() => findServer('redis-server', [empty])).toThrow(advice);
    vi.stubEnv('LOCKS_SERVER_PATH', empty);
    await expect(startRedis()).rejects.toThrow(advice);
  });

  it('starts the one that LOCKS_SERVER_PATH names', async () => {
    await symlink(findServer('redis-server'), path.join(empty, 'redis-server'));
    vi.stubEnv('LOCKS_SERVER_PATH', empty);
    await using redis = await startRedis();
    expect(await redis.command('PING')).toBe('PONG');
  });
});

describe('the installer', () => {
  it('does nothing when all is there', () => {
    const log = vi.fn<(line: string) => void>();
    expect(ensureServers(['redis'], { log })).toEqual({ installed: [], missing: [] });
    expect(log).not.toHaveBeenCalled();
  });

  it('names what is missing and what to do about it', () => {
    const log = vi.fn<(line: string) => void>();
    expect(ensureServers(['redis'], { log, searchPath: [empty] })).toEqual({
      installed: [],
      missing: ['redis'],
    });
    expect(log.mock.calls).toHaveLength(1);
    expect(log.mock.calls[0]?.[0]).toMatch(advice);
  });

  it('says so as a program too, and fails', () => {
    const env = { ...process.env, LOCKS_SERVER_PATH: empty };
    const run = spawnSync(process.execPath, [installer, 'redis'], { env, encoding: 'utf8' });
    expect(run.status).toBe(1);
    expect(run.stderr).toMatch(advice);
    expect(spawnSync(process.execPath, [installer, 'redis']).status).toBe(0);
  });

  it('says what brings a server that comes from Maven or PyPI', () => {
    const log = vi.fn<(line: string) => void>();
    const kinds = ['dynamodb', 's3'];
    const { missing } = ensureServers(kinds, { log, searchPath: [empty] });
    expect(missing).toContain('dynamodb');
    expect(log.mock.calls[0]?.[0]).toMatch(/Missing for dynamodb: java.*Maven brings.*JDK.*DYNAMODB_URL/);
  });

  it('refuses a kind that it does not know', () => {
    expect(() => ensureServers(['rediss'])).toThrow(/"rediss".*redis/);
  });
});
