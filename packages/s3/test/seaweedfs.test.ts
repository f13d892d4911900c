import { describe, expect, it } from 'vitest';
import { limit, openClient, openStore, seaweedfs, write } from './fixture.ts';
import { recordTests } from './record-tests.ts';

describe('records of a bucket of SeaweedFS', () => {
  recordTests(seaweedfs, 4);

  it('wrong credentials are said at once, and what is needed', async () => {
    const credentials = { accessKeyId: 'nobody', secretAccessKey: 'wrong' };
    const { bucket } = await openStore({ client: openClient(await seaweedfs()) });
    const { store } = await openStore({ client: openClient(await seaweedfs(), { credentials }), bucket });
    for (const call of [() => store.read(['k'], limit()), () => store.write(write('k', 'v'), limit())]) {
      const error = await call().catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(Error);
      expect(store.isRetryable(error)).toBe(false);
    }
  });
});
