import { type EtcdServer, startEtcd } from '@locks/test-servers';
import { Etcd3 } from 'etcd3';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { examineEtcd } from '../src/doctor.ts';
import { clientOptions } from '../src/index.ts';
import { SERVER_VERSIONS } from '../src/server-versions.ts';

let server: EtcdServer;
beforeAll(async () => {
  server = await startEtcd();
});
afterAll(() => server.stop());

it('examines the members of a client of the application, which stays open, and of addresses', async () => {
  const client = new Etcd3(clientOptions({ hosts: server.url }));
  const { version } = await server.status();
  const single = [expect.objectContaining({ id: 'etcd/single-member', severity: 'warning' })];
  expect(await examineEtcd(client)).toMatchObject({ store: 'etcd', version, findings: single });
  expect((await examineEtcd({ hosts: [server.url] }, { waiterTtlMs: 5_000 })).findings).toEqual(single);
  expect(await client.get('still open')).toBeNull();
  client.close();
});

it('etcd/version: a member is older than what locks need', async () => {
  const { etcd } = SERVER_VERSIONS;
  SERVER_VERSIONS.etcd = { oldest: '99.1', tested: '99.1' };
  try {
    const { version, findings } = await examineEtcd({ hosts: server.url });
    expect(findings).toContainEqual({
      id: 'etcd/version',
      severity: 'error',
      what: `the server is etcd ${version}; the locks need 99.1 or newer`,
      toDo: 'upgrade the server to 99.1 or newer',
    });
  } finally {
    SERVER_VERSIONS.etcd = etcd;
  }
});

it('throws where no member answers, and for options of locks among those of the client', async () => {
  const refused = { code: 'LOCK_BACKEND', message: expect.stringMatching(/no member of etcd answers: ./) };
  await expect(examineEtcd({ hosts: 'http://127.0.0.1:1' })).rejects.toMatchObject(refused);
  await expect(examineEtcd({ hosts: server.url, prefix: 'a/' } as never)).rejects.toMatchObject({
    code: 'LOCK_INVALID_ARGUMENT',
    message: expect.stringContaining('the second argument of examineEtcd()') as string,
  });
});
