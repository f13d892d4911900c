import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { KubeConfig } from '@kubernetes/client-node';
import { createLocks } from '@locks/core';
import { expect, it, onTestFinished } from 'vitest';
import { kubernetesBackend } from '../src/index.ts';
import { LeaseStore } from '../src/lease-store.ts';
import { within, writeOf } from './store-on-server.ts';

interface Answer {
  readonly status: number;
  readonly body: object;
}

const TIME = Date.parse('2026-11-28T10:00:00Z');
const DATE = 'Sat, 28 Nov 2026 10:00:00 GMT';
const LEASE = {
  metadata: {
    name: 'locks.lock.a',
    uid: 'u',
    resourceVersion: '7',
    annotations: { 'locks/key': 'locks/lock/a', 'locks/value': 'one' },
  },
};
const absent: Answer = { status: 404, body: { details: { kind: 'leases', name: 'locks.lock.a' } } };

/** A server that answers with these headers what it is told. */
async function answering(
  headers: Readonly<Record<string, string>>,
  answers: readonly Answer[],
): Promise<KubeConfig> {
  const left = [...answers];
  const server = createServer((request, response) => {
    request.resume();
    const { status, body } = left.shift() ?? { status: 500, body: {} };
    response.sendDate = false;
    response.writeHead(status, { 'content-type': 'application/json', ...headers });
    response.end(JSON.stringify(body));
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  onTestFinished(() => void server.close());
  const config = new KubeConfig();
  config.loadFromOptions({
    clusters: [
      {
        ...{ name: 'c', skipTLSVerify: true },
        server: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
      },
    ],
    users: [{ name: 'u' }],
    contexts: [{ name: 'x', cluster: 'c', user: 'u' }],
    currentContext: 'x',
  });
  return config;
}

function storeOn(kubeConfig: KubeConfig): LeaseStore {
  const options = { namespace: 'default', prefix: 'locks/', expiry: 'clock', skewMs: 1_000 } as const;
  const store = new LeaseStore({ kubeConfig, ...options });
  onTestFinished(() => store.close());
  return store;
}

const KEY = 'locks/lock/a';

it('every answer tells the time of its header Date, also where a Lease is missing or another write was first', async () => {
  const answers = [
    { status: 200, body: LEASE },
    absent,
    { status: 201, body: LEASE },
    { status: 409, body: { message: 'changed' } },
    { status: 404, body: {} },
    { status: 200, body: {} },
  ];
  const store = storeOn(await answering({ date: DATE }, answers));
  expect(store.clock).toEqual({ stepMs: 1_000, skewMs: 1_000, endsHolds: true });
  const told = [
    await store.read([KEY], within),
    await store.read([KEY], within),
    await store.write(writeOf(KEY, 'one'), within),
    await store.write(writeOf(KEY, 'one', 'u/7'), within),
    await store.write(writeOf(KEY, 'one', 'u/7'), within),
    await store.write(writeOf(KEY, undefined, 'u/7'), within),
  ];
  for (const answer of told) expect(answer.now).toBe(TIME);
});

it('an answer without the header, or of a cache, tells no time', async () => {
  for (const headers of [{}, { date: DATE, age: '3' }, { date: 'yesterday' }]) {
    const store = storeOn(await answering(headers as Record<string, string>, [absent]));
    expect(await store.read([KEY], within)).toEqual({ records: [undefined] });
  }
});

it('a server whose answers tell no time grants nothing, and the message says what to do', async () => {
  const locks = createLocks(kubernetesBackend(await answering({}, [absent])));
  onTestFinished(() => locks.close());
  await expect(locks.lock('a').tryAcquire()).rejects.toMatchObject({
    code: 'LOCK_BACKEND',
    message: expect.stringContaining("expiry: 'observed'") as string,
  });
});
