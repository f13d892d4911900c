import assert from 'node:assert/strict';
import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { endOf, type Participant, startParticipant, type upgradeStores } from './upgrade.ts';

/** The package that writes the data of a store, and what a version with the next layout would have in its code. */
interface Raised {
  readonly package: string;
  readonly changes: readonly (readonly [found: RegExp, next: string])[];
}

const LAYOUT = /(?<=\bconst (?:LAYOUT|SCHEMA_VERSION) = )1(?=;)/g;
const redis: Raised = { package: 'redis-protocol', changes: [[LAYOUT, '2']] };

const raised: Readonly<Record<keyof typeof upgradeStores, Raised>> = {
  sqlite: { package: 'sqlite', changes: [[LAYOUT, '2']] },
  ioredis: redis,
  'node-redis': redis,
  postgres: {
    package: 'postgres',
    changes: [
      [
        /(?=const VERSION = migrations\.length;)/g,
        'migrations.push(`UPDATE @schema@.schema_version SET version = ${migrations.length + 1}`);',
      ],
    ],
  },
  'postgres-advisory': { package: 'postgres', changes: [[LAYOUT, '2']] },
  mysql: {
    package: 'mysql',
    // The build has put the number in the place of its name.
    changes: [
      [/(?<=\bfound === )1\b/g, '2'],
      [/(?<=\('version', )1(?=\))/g, '2'],
      [/(?<=String\(found\), )1\b/g, '2'],
    ],
  },
  etcd: { package: 'etcd', changes: [[LAYOUT, '2']] },
  zookeeper: { package: 'zookeeper', changes: [[LAYOUT, '2']] },
};

/**
 * A process of this version and one of a version with another layout, on one store, either first: who comes second is refused, and so
 * never holds a lock that the first one holds.
 *
 * @param folder - of a project with the packages of this version; it is left as it was
 */
export async function keptApart(
  store: keyof typeof upgradeStores,
  folder: string,
  env: NodeJS.ProcessEnv,
): Promise<void> {
  const all: Participant[] = [];
  const present = (place: string) => startParticipant([store, place], folder, env, all);
  const next = async (place: string): Promise<Participant> => {
    const undo = raiseLayout(folder, raised[store]);
    try {
      return await startParticipant([store, place], folder, env, all);
    } finally {
      undo();
    }
  };
  try {
    const first = await present('presentfirst');
    await first.call.acquire({ name: 'held' });
    const second = await next('presentfirst');
    const refusal = await second.call.refusal({ name: 'other' });
    // A newer version migrates the tables of PostgreSQL, and a running process goes on.
    assert.equal(refusal, store === 'postgres' ? 'none' : 'OLDER_SCHEMA', `${store}: a newer process`);
    if (store === 'postgres')
      assert.equal(await second.call.tryAcquire({ name: 'held' }), 'refused', `${store}: held by the older`);
    // Advisory locks of all places are in one database, whose layout is that of the sessions that live.
    await Promise.all([endOf(first), endOf(second)]);

    const newer = await next('nextfirst');
    await newer.call.acquire({ name: 'held' });
    const older = await present('nextfirst');
    assert.equal(await older.call.refusal({ name: 'other' }), 'NEWER_SCHEMA', `${store}: an older process`);
  } finally {
    await Promise.all(all.map((one) => one.kill()));
  }
}

/** Makes the installed packages those of a version with the next layout; the function that it returns undoes that. */
function raiseLayout(folder: string, { package: name, changes }: Raised): () => void {
  const dist = join(folder, 'node_modules/@locks', name, 'dist');
  const before = new Map(
    globSync('**/*.js', { cwd: dist }).map((file) => {
      const path = join(dist, file);
      return [path, readFileSync(path, 'utf8')];
    }),
  );
  const after = new Map(before);
  for (const [found, text] of changes) {
    const files = [...after].filter(([, code]) => code.search(found) >= 0);
    assert.notEqual(files.length, 0, `the code of @locks/${name} has ${found.source}`);
    for (const [path, code] of files) after.set(path, code.replace(found, text));
  }
  for (const [path, code] of after) writeFileSync(path, code);
  return () => {
    for (const [path, code] of before) writeFileSync(path, code);
  };
}
