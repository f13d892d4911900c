import { fileURLToPath } from 'node:url';
import { createLocks } from '@locks/core';
import { startRedis, startRestBridge } from '@locks/test-servers';
import { build } from 'esbuild';
import { Miniflare } from 'miniflare';
import { expect, it } from 'vitest';
import { ioredisParticipant } from './setup.ts';

it('requests of a Cloudflare Worker and a process on ioredis take turns', async () => {
  await using redis = await startRedis();
  await using bridge = await startRestBridge(redis);
  const { outputFiles } = await build({
    entryPoints: [fileURLToPath(new URL('fixtures/worker.ts', import.meta.url))],
    bundle: true,
    format: 'esm',
    platform: 'neutral',
    external: ['node:*'],
    write: false,
  });
  const worker = new Miniflare({
    modules: true,
    script: outputFiles[0]?.text ?? '',
    compatibilityDate: '2026-06-01',
    compatibilityFlags: ['nodejs_compat'],
    bindings: { url: bridge.url, token: bridge.token },
  });
  await using process = ioredisParticipant(redis);
  const locks = createLocks(process.backend);
  try {
    await redis.command('SET', 'number', 0);
    const tokens: string[] = [];
    const inWorker = async (): Promise<void> => {
      const response = await worker.dispatchFetch('http://worker/');
      expect(response.status).toBe(200);
      tokens.push(((await response.json()) as { readonly fencingToken: string }).fencingToken);
    };
    const here = (): Promise<void> =>
      locks.lock('number').run(
        async (lease) => {
          const before = Number(await redis.command('GET', 'number'));
          await redis.command('SET', 'number', before + 1);
          tokens.push(String(lease.fencingToken));
        },
        { waitMs: 20_000 },
      );
    await Promise.all(Array.from({ length: 20 }, (_, at) => (at % 2 === 0 ? inWorker() : here())));
    expect(await redis.command('GET', 'number')).toBe('20');
    expect(new Set(tokens).size).toBe(20);
  } finally {
    await locks.close();
    await worker.dispose();
  }
});
