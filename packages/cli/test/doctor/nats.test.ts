import { startNats } from '@locks/test-servers';
import { connect } from '@nats-io/transport-node';
import { describe, expect, it, onTestFinished } from 'vitest';
import { locksHere } from '../program.ts';
import { diagnose, severities } from './diagnose.ts';

type Options = Parameters<typeof startNats>[0];

async function started(options?: Options): Promise<string> {
  const server = await startNats(options);
  onTestFinished(() => server.stop());
  return server.url;
}

async function makeStream(url: string, name: string, more: object): Promise<void> {
  const connection = await connect({ servers: url });
  const config = { name: `KV_${name}`, subjects: [`$KV.${name}.>`], max_msgs_per_subject: 1, ...more };
  await connection.request(`$JS.API.STREAM.CREATE.KV_${name}`, JSON.stringify(config));
  await connection.close();
}

describe('locks doctor on NATS', () => {
  it('makes no bucket, and finds that the one of the first lock is on one server', async () => {
    const url = await started();
    for (let times = 0; times < 2; times += 1)
      expect(await diagnose(url)).toMatchObject({ store: 'nats', findings: [] });
    expect((await locksHere(url, 'run', 'a', '--', 'true')).code).toBe(0);
    expect(severities(await diagnose(url))).toEqual({ 'nats/replicas': 'warning' });
  });

  it('nats/bucket, nats/republish, nats/message-ttl: a bucket that was made in another way', async () => {
    const url = await started();
    await makeStream(url, 'memory', { storage: 'memory', discard: 'new' });
    expect(severities(await diagnose(`${url}/memory`))).toEqual({
      'nats/bucket': 'error',
      'nats/replicas': 'warning',
      'nats/republish': 'warning',
      'nats/message-ttl': 'warning',
    });
  });

  it('nats/jetstream: it is not enabled', async () => {
    const url = await started({ jetStream: false });
    expect(severities(await diagnose(url))).toEqual({ 'nats/jetstream': 'error' });
  });

  it('says that no server is there, with the code for it', async () => {
    const { code, stderr } = await locksHere('nats://127.0.0.1:1', 'doctor');
    expect([code, stderr]).toEqual([69, expect.stringContaining('nats cannot be reached')]);
  });
});
