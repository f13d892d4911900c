import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { CallableProcess } from '../../../packages/core/conformance/process/callable-process.ts';

/** A project with the packages of one version. */
interface Version {
  readonly folder: string;
  readonly version: string;
}

/** What a participant does something to. */
interface Target {
  readonly name: string;
  readonly mode?: 'read' | 'write' | 'permit';
}

/** The calls of scripts/applications/upgrade/participant.js, a process that has the packages of one version. */
interface Calls {
  modes(): Promise<readonly string[]>;
  /** The fencing token, `'no token'`, or `'refused'`. */
  tryAcquire(what: Target): Promise<string>;
  acquire(what: Target): Promise<string>;
  /** The code of the error with which the store refuses the process; `'none'` where it is granted the lock, or is told that it is held. */
  refusal(what: Target): Promise<string>;
  release(what: Target): Promise<void>;
  isValid(what: Target): Promise<boolean>;
  count(what: Target & { readonly file: string; readonly times: number }): Promise<void>;
  end(): Promise<void>;
}
export type Participant = CallableProcess<Calls>;

/** The names of scripts/applications/runtimes/stores.js, with the server that each needs. */
export const upgradeStores = {
  sqlite: undefined,
  ioredis: 'redis',
  'node-redis': 'redis',
  postgres: 'postgres',
  'postgres-advisory': 'postgres',
  mysql: 'mysql',
  etcd: 'etcd',
  zookeeper: 'zookeeper',
} as const;

/** Longer than the ttl of the participants: a lease that lives so long was renewed. */
const PAST_THE_TTL_MS = 3_000;
const COUNTS = 15;
const ANSWERS_WITHIN_MS = 60_000;

/**
 * Processes of both versions on one store, as in a rolling deployment: each version in turn holds while the other one comes.
 * Rejects when they do not keep each other out, lose the order, let a fencing token fall, or wait for ever.
 */
export async function besideEachOther(
  store: string,
  [before, after]: readonly [Version, Version],
  env: NodeJS.ProcessEnv,
  folder: string,
): Promise<void> {
  const all: Participant[] = [];
  const start = (version: Version) => startParticipant([store], version.folder, env, all);
  try {
    // In this order: the schema is that of the older version first.
    const old = await start(before);
    const young = await start(after);
    await Promise.all([
      handOffs(old, young, `${store}-old-first`),
      handOffs(young, old, `${store}-new-first`),
      modes(old, young, `${store}-old-modes`),
      modes(young, old, `${store}-new-modes`),
      counter(old, young, `${store}-counter`, join(folder, `${store}.counter`)),
    ]);
    await killed(await start(before), young, `${store}-old-killed`);
    await killed(await start(after), old, `${store}-new-killed`);
    await Promise.all([endOf(old), endOf(young)]);
  } finally {
    await Promise.all(all.map((one) => one.kill()));
  }
}

/**
 * Starts a process of the version in a folder.
 *
 * @param args - the name of the store, and the place in it, where it is not that of the default options
 * @param all - the process is added to them
 */
export async function startParticipant(
  args: readonly [store: string, place?: string],
  folder: string,
  env: NodeJS.ProcessEnv,
  all: Participant[],
): Promise<Participant> {
  const child = fork(join(folder, 'upgrade/participant.js'), args as readonly string[], {
    cwd: folder,
    env: { ...process.env, ...env },
    execArgv: [],
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  const one: Participant = new CallableProcess(child, ANSWERS_WITHIN_MS);
  all.push(one);
  await one.ready();
  return one;
}

/** A process ends by itself once its locks are closed. */
export async function endOf({ child, call }: Participant): Promise<void> {
  const ended = once(child, 'exit');
  await call.end();
  await ended;
}

/** A hold of the one is kept and seen by the other, who waits, is handed the lock, and hands it back. */
async function handOffs(holder: Participant, other: Participant, name: string): Promise<void> {
  const what = { name };
  const tokens = [await holder.call.acquire(what)];
  assert.equal(await other.call.tryAcquire(what), 'refused', `${name}: held by the other`);
  const next = unlessForgotten(other.call.acquire(what));
  await sleep(PAST_THE_TTL_MS);
  assert.ok(await holder.call.isValid(what), `${name}: the lease was renewed`);
  assert.equal(await stateOf(next), 'waits', `${name}: the other still waits`);
  await holder.call.release(what);
  tokens.push(await next);
  const third = unlessForgotten(holder.call.acquire(what));
  await other.call.release(what);
  tokens.push(await third);
  await holder.call.release(what);
  if (tokens[0] === 'no token') return;
  const numbers = tokens.map((token) => BigInt(token));
  assert.ok(
    numbers.every((token, index) => index === 0 || token > (numbers[index - 1] as bigint)),
    `${name}: the tokens ${tokens.join(', ')} rise`,
  );
}

/** Readers of both versions hold together and keep a writer out; a semaphore of two counts the permits of both. */
async function modes(first: Participant, second: Participant, name: string): Promise<void> {
  const has = await first.call.modes();
  if (has.includes('shared')) {
    const read: Target = { name: `${name}-rw`, mode: 'read' };
    const write: Target = { ...read, mode: 'write' };
    assert.notEqual(await first.call.tryAcquire(read), 'refused');
    assert.notEqual(await second.call.tryAcquire(read), 'refused', `${name}: a second reader`);
    assert.equal(await second.call.tryAcquire(write), 'refused', `${name}: a writer beside readers`);
    await Promise.all([first.call.release(read), second.call.release(read)]);
    assert.notEqual(await second.call.tryAcquire(write), 'refused', `${name}: a writer after readers`);
    assert.equal(await first.call.tryAcquire(read), 'refused', `${name}: a reader beside a writer`);
    await second.call.release(write);
  }
  if (has.includes('permit')) {
    const permit: Target = { name: `${name}-permits`, mode: 'permit' };
    assert.notEqual(await first.call.tryAcquire(permit), 'refused');
    assert.notEqual(await second.call.tryAcquire(permit), 'refused', `${name}: the second of two permits`);
    assert.equal(await first.call.tryAcquire(permit), 'refused', `${name}: a third of two permits`);
    await Promise.all([first.call.release(permit), second.call.release(permit)]);
  }
}

async function counter(one: Participant, other: Participant, name: string, file: string): Promise<void> {
  writeFileSync(file, '0');
  const work = { name, file, times: COUNTS };
  await Promise.all([one.call.count(work), other.call.count(work)]);
  assert.equal(readFileSync(file, 'utf8'), `${2 * COUNTS}`, `${name}: no count was lost`);
}

/** The leases of a killed process end by themselves for the other version too. */
async function killed(holder: Participant, other: Participant, name: string): Promise<void> {
  await holder.call.acquire({ name });
  const next = unlessForgotten(other.call.acquire({ name }));
  await holder.kill();
  await next;
  await other.call.release({ name });
}

/** An answer that a check, which failed meanwhile, does not wait for. */
function unlessForgotten<T>(answer: Promise<T>): Promise<T> {
  answer.catch(() => undefined);
  return answer;
}

async function stateOf(promise: Promise<unknown>): Promise<'waits' | 'done'> {
  return await Promise.race([promise.then(() => 'done' as const), sleep(50).then(() => 'waits' as const)]);
}
