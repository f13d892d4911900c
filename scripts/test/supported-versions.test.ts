import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { supportedVersions, wrongMentions } from '../checks/supported-versions.ts';
import { root } from '../launcher/root.mjs';

const supported = supportedVersions(readFileSync(join(root, 'docs/support.md'), 'utf8'));

function problems(document: string): string[] {
  return wrongMentions(document, supported).map(({ line, text }) => `${line}: ${text}`);
}

describe('docs/support.md', () => {
  it('has a row for each server, runtime, client and tool', () => {
    expect([...supported.keys()]).toEqual(
      expect.arrayContaining([
        'Redis',
        'Valkey',
        'Node',
        'TypeScript',
        'ioredis',
        'redis',
        'etcd3',
        'NestJS',
      ]),
    );
  });

  it('says what a product needs, the oldest version that was tried, and what features need', () => {
    expect(supported.get('PostgreSQL')).toEqual({
      needs: '12',
      oldestTried: '15',
      versions: new Set(['12', '15', '18', '14']),
      required: new Set(['12', '15', '14']),
    });
  });
});

describe('a document', () => {
  it.each([
    'Redis ≥ 6.2',
    'Redis 6.2 to 8.6, Valkey 8 and 9',
    'Node.js >=20.19; SQLite needs Node 22.13 or newer',
    'MySQL 8.0 or MariaDB 10.5 and later',
    'tested with ZooKeeper 3.8',
    'NestJS 11 and 12',
    'etcd 3.4 or newer',
    'measured with Redis 7 over loopback',
    'MySQL 64 MB; 16 Redis 40 %; lost: etcd 29, ioredis 40',
    'on Redis 7.0 on one core',
  ])('may say "%s"', (text) => {
    expect(problems(text)).toEqual([]);
  });

  it.each([
    ['Redis ≥ 6.0', '1: Redis ≥ 6.0'],
    ['Redis ≥ 7.0', '1: Redis ≥ 7.0'],
    ['Node 18 or newer', '1: Node 18 or newer'],
    ['Node.js 20.10', '1: Node.js 20.10'],
    ['MariaDB or MySQL 8, three tables', '1: MySQL 8'],
    ['tested with PostgreSQL 12', '1: tested with PostgreSQL 12'],
    ['etcd ≥ 3.5', '1: etcd ≥ 3.5'],
    ['PostgreSQL 15 to 19', '1: PostgreSQL 15 to 19'],
    ['one\nZooKeeper ≥ 3.4', '2: ZooKeeper ≥ 3.4'],
    ['MariaDB 10.6', '1: MariaDB 10.6'],
    ['ioredis 4', '1: ioredis 4'],
  ])('may not say %j', (text, problem) => {
    expect(problems(text)).toEqual([problem]);
  });
});
