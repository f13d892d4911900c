import { expect, it } from 'vitest';
import { locks } from './program.ts';
import { startStore, STORE_NAMES } from './started-stores.ts';

it.each(STORE_NAMES)(
  'prepares %s in three processes at once, and again; then locks and once work',
  async (name) => {
    await using store = await startStore(name);
    // The table of that name is there already.
    const url = store.url.replace('dynamodb://eu-central-1/locks?', 'dynamodb://eu-central-1/prepared?');
    const prepared = { code: 0, stdout: 'prepared\n', stderr: '' };
    expect(await Promise.all([1, 2, 3].map(() => locks(url, 'prepare')))).toEqual([
      prepared,
      prepared,
      prepared,
    ]);
    expect(await locks(url, 'prepare')).toEqual(prepared);
    expect(await locks(url, 'once', 'job', '--slot', 'day', '--at-most', '1m', '--', 'true')).toMatchObject({
      code: 0,
    });
  },
);
