import type { TestbedServer } from '../conduct/testbed.ts';
import type { StoreId } from '../contenders/contender.ts';

/** One kind of server, for the suites that work alike on all of them. */
export interface Store {
  readonly id: Exclude<StoreId, 'kinds' | 'cohorts'>;
  /** How the operations are counted, for the reader. */
  readonly counting: string;
  /** @param connections - for how many it is configured, where its default is fewer */
  start(connections?: number): Promise<TestbedServer>;
}

/** What `describe` says of a server that was started; it is stopped where that fails. */
export async function describedServer<S extends { readonly pid?: number; stop(): Promise<void> }>(
  server: S,
  describe: (server: S) => Promise<Omit<TestbedServer, 'stop'> & Partial<Pick<TestbedServer, 'stop'>>>,
): Promise<TestbedServer> {
  try {
    const { pid } = server;
    return { ...(pid !== undefined && { pid }), stop: () => server.stop(), ...(await describe(server)) };
  } catch (error) {
    await server.stop();
    throw error;
  }
}
