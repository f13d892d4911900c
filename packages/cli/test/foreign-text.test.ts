import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { waitUntil } from '@locks/test-servers';
import { describe, expect, it } from 'vitest';
import { jsonLine, shown } from '../src/foreign-text.ts';
import { BASE } from './once-slot.ts';
import { folder, locks, type Outcome, pidIn, Program } from './program.ts';
import { TestRedis } from './started-stores.ts';

/** Colours the terminal, clears it in C1, and turns the direction of what follows. */
const EVIL = '\u001B[31m\u009B2J\u202E';
const redis = new TestRedis();

function expectPlain({ stdout, stderr }: Outcome): string {
  const text = stdout + stderr;
  expect(text).not.toMatch(/[^\P{C}\n]/u);
  expect(text).toMatch(/\\u(\{202e\}|202e)/);
  return text;
}

describe('text of others', () => {
  it('of names, labels and acquisition ids does not reach the terminal in ls, show and release', async () => {
    const name = `name${EVIL}`;
    await using _lease = await redis.locks.lock(name).acquire({ label: 'label\u202E' });
    await redis.client.set('lock::labelled', `id|-|1|label${EVIL}`, 'PX', 60_000);
    await redis.client.set('lock::strange', `stranger${EVIL}`, 'PX', 60_000);
    for (const args of [
      ['ls'],
      ['ls', '--json'],
      ['show', name],
      ['show', 'labelled'],
      ['show', 'strange'],
      ['show', 'strange', '--json'],
    ])
      expectPlain(await locks(redis.url, ...args));
    const listed = JSON.parse((await locks(redis.url, 'show', 'strange', '--json')).stdout) as object;
    expect(listed).toMatchObject({ holders: [{ acquisitionId: `stranger${EVIL}` }] });
    expectPlain(await locks(redis.url, 'run', 'labelled', '--no-wait', '--', 'true'));
    expectPlain(await locks(redis.url, 'run', name, '--no-wait', '--', 'true'));
    expectPlain(await locks(redis.url, 'release', 'strange', '--everyone', '--yes'));
    await redis.client.set('lock::strange', `stranger${EVIL}`, 'PX', 60_000);
    expectPlain(await locks(redis.url, 'release', 'strange', '--everyone', '--yes', '--json'));
  });

  it('does not reach it where a lock is lost, a command is not found, or a record is shown', async () => {
    const [name, file] = [`lost${EVIL}`, join(folder(), 'pid')];
    const script = `echo $$ > ${file}; while :; do sleep 0.02; done`;
    const program = new Program(['run', name, '--ttl', '3s', '--', 'sh', '-c', script], redis.url);
    await waitUntil(() => pidIn(file), { what: 'the command to run' });
    await redis.locks.forceRelease(name);
    expectPlain(await program.outcome);
    expectPlain(await locks(redis.url, 'run', 'x', '--', `missing${EVIL}`));
    await locks(redis.url, 'once', 'job', ...BASE, '--', 'true');
    const record = JSON.parse((await redis.client.get('once:job')) ?? '') as object;
    await redis.client.set(
      'once:job',
      JSON.stringify({ ...record, slot: `9${EVIL}`, label: `label${EVIL}` }),
    );
    expectPlain(await locks(redis.url, 'once', 'job', ...BASE, '--verbose', '--', 'true'));
  });

  it('of the errors of a server does not reach it', async () => {
    const server = spawn(process.execPath, ['-e', SERVER]);
    const [port] = await new Promise<string[]>((resolve) =>
      server.stdout.once('data', (chunk) => resolve(String(chunk).trim().split(' '))),
    );
    expectPlain(await locks(`redis://127.0.0.1:${port}`, 'ls'));
    server.kill();
  });

  it('stays what it is in JSON, and can be read elsewhere', () => {
    expect(JSON.parse(jsonLine({ [EVIL]: '\u{E0001} plain \u007F' }))).toEqual({
      [EVIL]: '\u{E0001} plain \u007F',
    });
    expect(jsonLine('\u{E0001}\u009B')).toBe('"\\udb40\\udc01\\u009b"\n');
    expect(shown('ä 日本 \u{1F600}')).toBe('ä 日本 \u{1F600}');
    expect(shown('\u{E0001}\n')).toBe('\\u{e0001}\\u{a}');
  });
});

/** Refuses whatever it is asked. */
const SERVER = `require('node:net').createServer((socket) => socket.on('data', (data) => {
  for (const _command of String(data).match(/^\\*/gm) ?? []) socket.write('-WRONGPASS no${EVIL}\\r\\n');
})).listen(0, '127.0.0.1', function () { console.log(this.address().port + ' is the port'); });`;
