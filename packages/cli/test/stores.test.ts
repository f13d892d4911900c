import { startEtcd, startMariadb, startPostgres, startZookeeper } from '@locks/test-servers';
import { describe, expect, it } from 'vitest';
import { locks, MAIN } from './program.ts';

const STORES: Readonly<Record<string, () => Promise<{ url: string; stop: () => Promise<unknown> }>>> = {
  async postgres() {
    const server = await startPostgres();
    return { url: server.url, stop: () => server.stop() };
  },
  async mysql() {
    const server = await startMariadb();
    return { url: server.urlOf('app'), stop: () => server.stop() };
  },
  async etcd() {
    const server = await startEtcd();
    const address = server.url.replace('http://', '');
    // A list of members.
    return { url: `etcd://${address},${address}`, stop: () => server.stop() };
  },
  async zookeeper() {
    const server = await startZookeeper();
    return { url: `zookeeper://${server.address},${server.address}`, stop: () => server.stop() };
  },
};

/** What `--prefix` stands for. */
const PREFIXES: Readonly<Record<string, string>> = {
  postgres: 'other_schema',
  mysql: 'other_',
  etcd: 'other/',
  zookeeper: '/other',
};

describe.each(Object.entries(STORES))('locks on %s', (name, start) => {
  it('run, ls, show and release find each other, and a prefix keeps them apart', async () => {
    const { url, stop } = await start();
    try {
      const prefix = ['--prefix', PREFIXES[name] as string];
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
    } finally {
      await stop();
    }
  });
});
