import { describe, expect, it } from 'vitest';
import { locks, MAIN } from './program.ts';
import { startStore } from './started-stores.ts';

/** What `--prefix` stands for. */
const PREFIXES = [
  ['postgres', 'other_schema'],
  ['mysql', 'other_'],
  ['etcd', 'other/'],
  ['zookeeper', '/other'],
] as const;

describe.each(PREFIXES)('locks on %s', (name, otherPrefix) => {
  it('run, ls, show and release find each other, and a prefix keeps them apart', async () => {
    await using store = await startStore(name);
    // Two addresses, as of a list of members.
    const isList = name === 'etcd' || name === 'zookeeper';
    const url = isList ? `${store.url},${store.url.split('//')[1]}` : store.url;
    const prefix = ['--prefix', otherPrefix];
    // Inside: the other commands see the hold.
    const inside = `"$0" "$1" show job --json && "$0" "$1" run job --no-wait -- true; test $? = 75 &&
        "$0" "$1" run job --no-wait ${prefix.join(' ')} -- true`;
    const outcome = await locks(url, 'run', 'job', '--', 'sh', '-c', inside, process.execPath, MAIN);
    expect(outcome).toMatchObject({ code: 0 });
    expect(JSON.parse(outcome.stdout)).toMatchObject({
      resource: 'job',
      holders: [{ mode: { kind: 'exclusive' }, acquisitionId: expect.any(String) as string }],
    });
    expect(await locks(url, 'ls')).toMatchObject({ code: 0, stdout: 'nothing is held or waited for\n' });
    expect((await locks(url, 'release', 'job', '--everyone', '--yes')).code).toBe(1);
  });
});
