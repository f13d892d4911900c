import { type MongodbServer, startMongodb } from '@locks/test-servers';
import { MongoClient } from 'mongodb';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { locksHere } from '../program.ts';
import { diagnose, severities } from './diagnose.ts';

let server: MongodbServer;
beforeAll(async () => {
  server = await startMongodb();
});
afterAll(() => server.stop());

const urlOf = (collection: string): string => {
  const url = new URL(server.url);
  url.pathname = '/app';
  url.searchParams.set('collection', collection);
  return url.href;
};

describe('locks doctor on MongoDB', () => {
  it('makes no collection, and finds that the server is no member of a replica set', async () => {
    const client = new MongoClient(server.url);
    expect(severities(await diagnose(urlOf('first')))).toEqual({ 'mongodb/standalone': 'warning' });
    const collections = await client.db('app').listCollections({ name: 'first' }).toArray();
    await client.close();
    expect(collections).toEqual([]);
    expect((await locksHere(urlOf('first'), 'run', 'a', '--', 'true')).code).toBe(0);
    expect(severities(await diagnose(urlOf('first')))).toEqual({ 'mongodb/standalone': 'warning' });
  });

  it('says what is wrong with a URL', async () => {
    for (const url of [server.url, 'mongodb://127.0.0.1:x/app', 'mongodb://127.0.0.1:1/app?w=x&nothing=1']) {
      const { code, stderr } = await locksHere(url, 'ls');
      expect([code, stderr]).toEqual([64, expect.stringContaining('LOCKS_URL')]);
    }
  });
});
