import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { connect } from 'node:net';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { freePort, isFree, RedisReplyError, startRedis, startReplicated, waitUntil } from '../src/index.ts';
import { sendCommand } from '../src/redis/send-command.ts';

describe('a standalone server', () => {
  it('answers commands, refuses bad ones, and leaves neither port nor directory behind', async () => {
    const redis = await startRedis();
    expect(await redis.command('SET', 'a', 1)).toBe('OK');
    expect(await redis.command('MGET', 'a', 'b')).toEqual(['1', null]);
    expect(redis.url).toBe(`redis://127.0.0.1:${redis.port}`);
    await expect(redis.command('INCR')).rejects.toBeInstanceOf(RedisReplyError);
    expect((await redis.info('server'))['process_id']).toBe(String(redis.pid));
    expect(existsSync(redis.dir)).toBe(true);
    await redis.stop();
    await redis.stop();
    expect(existsSync(redis.dir)).toBe(false);
    expect(await isFree(redis.port)).toBe(true);
  });

  it('takes arguments and a password', async () => {
    await using redis = await startRedis({ args: ['--maxmemory', '8mb'], password: 'p@ss word' });
    expect(await redis.command('CONFIG', 'GET', 'maxmemory')).toEqual(['maxmemory', String(8 * 1024 * 1024)]);
    await expect(sendCommand(redis, ['PING'])).rejects.toMatchObject({ code: 'NOAUTH' });
    await expect(startRedis({ args: ['--requirepass', 'x'] })).rejects.toThrow(
      'Give it as the option `password`',
    );
    expect(new URL(redis.url).password).toBe(encodeURIComponent('p@ss word'));
  });

  it('says what the server printed when it does not start', async () => {
    await expect(startRedis({ args: ['--no-such-option', '1'] })).rejects.toThrow(/no-such-option/);
  });

  it('is ready only when it is this server that answers on the port', async () => {
    await using first = await startRedis();
    await expect(startRedis({ port: first.port })).rejects.toThrow(`Port ${first.port} is taken`);
    expect(await first.command('PING')).toBe('PONG');
  });

  it('keeps connections but answers nothing while paused', async () => {
    await using redis = await startRedis();
    const socket = connect(redis.port, redis.host);
    let answer = '';
    socket.on('data', (chunk) => {
      answer += chunk.toString();
    });
    await redis.pause();
    socket.write('PING\r\n');
    await expect(sendCommand(redis, ['PING'], { timeoutMs: 200 })).rejects.toThrow(/did not answer PING/);
    expect(answer).toBe('');
    redis.resume();
    await waitUntil(() => answer === '+PONG\r\n', { what: 'the answer after the pause' });
    socket.destroy();
  });

  it('comes back on the same port, empty or with its data', async () => {
    await using redis = await startRedis();
    const { port, pid } = redis;
    await redis.command('SET', 'kept', 1);
    await redis.restart({ keepData: true });
    expect(await redis.command('GET', 'kept')).toBe('1');
    expect(redis.port).toBe(port);
    expect(redis.pid).not.toBe(pid);
    await redis.restart();
    expect(await redis.command('DBSIZE')).toBe(0);
  });

  it('is restarted from a pause and from a kill', async () => {
    await using redis = await startRedis();
    await redis.command('SET', 'a', 1);
    await redis.pause();
    await redis.restart({ keepData: true });
    expect(await redis.command('GET', 'a')).toBe('1');
    await redis.kill();
    expect(redis.running).toBe(false);
    await expect(redis.command('PING')).rejects.toMatchObject({ code: 'ECONNREFUSED' });
    await redis.restart({ keepData: true });
    expect(await redis.command('GET', 'a')).toBe('1');
  });

  it('is stopped while paused', async () => {
    const redis = await startRedis();
    await redis.pause();
    await redis.stop();
    expect(await isFree(redis.port)).toBe(true);
  });

  it('gives ports that are free and different', async () => {
    const ports = await Promise.all(Array.from({ length: 20 }, () => freePort()));
    expect(new Set(ports).size).toBe(20);
  });

  it.runIf(process.platform === 'linux')('gives no port that another living process was given', async () => {
    const ours = await Promise.all(Array.from({ length: 200 }, () => freePort()));
    const take = `const { freePort } = await import(process.argv[1]);
      console.log(JSON.stringify(await Promise.all(Array.from({ length: 1000 }, () => freePort()))));`;
    const module = new URL('../src/free-port.ts', import.meta.url).href;
    const args = ['--input-type=module', '-e', take, module];
    const { stdout } = await promisify(execFile)(process.execPath, args);
    const theirs = new Set(JSON.parse(stdout) as number[]);
    expect(theirs.size).toBe(1000);
    expect(ours.filter((port) => theirs.has(port))).toEqual([]);
  });
});

describe('a master with replicas', () => {
  it('is ready when a write reaches every replica', async () => {
    await using redis = await startReplicated({ replicas: 2 });
    await redis.master.command('SET', 'a', 1);
    for (const replica of redis.replicas) {
      await waitUntil(async () => (await replica.command('GET', 'a')) === '1', { what: 'replication' });
      await expect(replica.command('SET', 'a', 2)).rejects.toMatchObject({ code: 'READONLY' });
    }
    expect((await redis.master.info('replication'))['connected_slaves']).toBe('2');
  });
});
