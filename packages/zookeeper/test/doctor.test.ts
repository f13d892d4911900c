import { startZookeeper, type ZooKeeperServer } from '@locks/test-servers';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { ZooKeeperError } from '../src/client-port.ts';
import { examineZookeeper } from '../src/doctor.ts';
import { SERVER_VERSIONS } from '../src/server-versions.ts';

let server: ZooKeeperServer;
beforeAll(async () => {
  server = await startZookeeper();
});
afterAll(() => server.stop());

it('examines the servers from a program, with the session that it asks for', async () => {
  const { explain, ...seen } = await examineZookeeper(server.address);
  expect(seen).toEqual({
    store: 'zookeeper',
    version: expect.stringMatching(/^3\.\d+/) as string,
    findings: [expect.objectContaining({ id: 'zookeeper/standalone', severity: 'warning' })],
  });
  expect(explain?.(new ZooKeeperError('NO_AUTH', 'no'))).toMatchObject({ id: 'zookeeper/acl' });
  const { findings } = await examineZookeeper(server.address, { sessionTimeoutMs: 100 });
  expect(findings).toContainEqual(
    expect.objectContaining({
      id: 'zookeeper/session-timeout',
      severity: 'warning',
      what: expect.stringContaining('where 100 are asked for') as string,
    }),
  );
  await expect(examineZookeeper({ getSessionId() {} } as never)).rejects.toMatchObject({
    code: 'LOCK_INVALID_ARGUMENT',
    message: expect.stringMatching(/^examineZookeeper\(\).*connect string/) as string,
  });
});

it('zookeeper/version: the server is older than what locks need, or than what the tests ran on', async () => {
  const ages = async (oldest: string, tested: string): Promise<unknown> => {
    const { zookeeper } = SERVER_VERSIONS;
    SERVER_VERSIONS.zookeeper = { oldest, tested };
    try {
      const { findings } = await examineZookeeper(server.address);
      return findings.filter(({ id }) => id === 'zookeeper/version').map(({ severity }) => severity);
    } finally {
      SERVER_VERSIONS.zookeeper = zookeeper;
    }
  };
  expect(await ages('99.1', '99.1')).toEqual(['error']);
  expect(await ages('3.5', '99.1')).toEqual(['warning']);
  expect(await ages('3.5', '3.5')).toEqual([]);
});
