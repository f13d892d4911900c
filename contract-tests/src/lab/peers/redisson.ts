import { spawnSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../../../../', import.meta.url));
const PROJECT = fileURLToPath(new URL('redisson/', import.meta.url));
const BUILT = path.join(root, '.tools/lab/redisson');
const CLASS_PATH = `${BUILT}${path.delimiter}${path.join(BUILT, '*')}`;

/** A worker lives for seconds: it is to start fast. */
const FLAGS = ['-Xmx256m', '-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1'] as const;

/** The programs of a worker and of a peer, once {@link buildRedisson} has built them. */
export const redissonWorker = ['java', ...FLAGS, '-cp', CLASS_PATH, 'RedissonWorker'] as const;
export const redissonPeer = ['java', ...FLAGS, '-cp', CLASS_PATH, 'RedissonPeer'] as const;

let missing: string | undefined | null = null;

/** Builds worker and peer once. @returns what is missing for that */
export function buildRedisson(): string | undefined {
  if (missing === null) {
    mkdirSync(BUILT, { recursive: true });
    missing =
      run('mvn', ['-q', '-B', 'dependency:copy-dependencies', `-DoutputDirectory=${BUILT}`]) ??
      run('javac', ['-cp', CLASS_PATH, '-d', BUILT, 'RedissonWorker.java', 'RedissonPeer.java']);
  }
  return missing;
}

function run(command: string, args: readonly string[]): string | undefined {
  const { error, status, stdout, stderr } = spawnSync(command, args, { cwd: PROJECT, encoding: 'utf8' });
  if (error !== undefined) return `Redisson needs Java 17 and Maven, and ${command} is not installed`;
  if (status === 0) return undefined;
  return `${command} ${args[0]} failed: ${`${stdout}${stderr}`.trim().split('\n').at(-1)}`;
}
