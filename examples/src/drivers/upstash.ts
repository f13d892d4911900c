import { createLocks } from '@locks/core';
import { upstashBackend } from '@locks/upstash';

/** Does the work under the lock `report`, through the REST API of Upstash. */
export async function reportByUpstash<T>(url: string, token: string, work: () => Promise<T>): Promise<T> {
  const locks = createLocks(upstashBackend({ url, token }));
  try {
    return await locks.lock('report').run(work, { waitMs: 10_000 });
  } finally {
    await locks.close();
  }
}
