import {
  canFindServer,
  type KubernetesAccess,
  type KubernetesApiServer,
  startKubernetes,
} from '@locks/test-servers';
import type { RecordVersion, RecordWrite } from '@locks/record-protocol';
import { afterAll, beforeAll, describe } from 'vitest';
import { LeaseStore } from '../src/lease-store.ts';
import { kubeConfig } from './kube-config.ts';

export const within = {
  timeoutMs: 10_000,
  get signal(): AbortSignal {
    return AbortSignal.timeout(this.timeoutMs);
  },
};

export const bytes = (value: string): Uint8Array => new TextEncoder().encode(value);

export function writeOf(
  key: string,
  value: string | Uint8Array | undefined,
  ifVersion?: RecordVersion,
): RecordWrite {
  return { key, value: typeof value === 'string' ? bytes(value) : value, ifVersion, isIdle: false };
}

/** Writes what must be written. @returns its version */
export async function put(store: LeaseStore, ...args: Parameters<typeof writeOf>): Promise<RecordVersion> {
  const written = await store.write(writeOf(...args), within);
  if (written.status !== 'written') throw new Error(`${args[0]} was changed by another`);
  return written.version;
}

export async function valueOf(store: LeaseStore, key: string): Promise<string | undefined> {
  const { records } = await store.read([key], within);
  return records[0] && new TextDecoder().decode(records[0].value);
}

interface OnServer {
  readonly server: KubernetesApiServer;
  /** A store of the administrator, or of a user, at the server or at a proxy; closed after the tests. */
  open(options?: {
    readonly user?: string;
    readonly at?: Partial<KubernetesAccess>;
    readonly namespace?: string;
  }): Promise<LeaseStore>;
}

/** Tests with an API server, which must have been built: `node test-servers/install.mjs kubernetes`. */
export function describeOnKubernetes(
  title: string,
  users: readonly string[],
  tests: (on: OnServer) => void,
): void {
  describe.skipIf(!canFindServer('kubernetes'))(title, () => {
    const stores: LeaseStore[] = [];
    let server: KubernetesApiServer;
    beforeAll(async () => {
      server = await startKubernetes({ users });
    });
    afterAll(async () => {
      await Promise.all(stores.map((store) => store.close()));
      await server?.stop();
    });
    tests({
      get server() {
        return server;
      },
      async open({ user, at, namespace = 'default' } = {}) {
        const config = kubeConfig({ ...(await server.access(user)), ...at });
        const store = new LeaseStore({
          ...{ kubeConfig: config, namespace, prefix: 'locks/' },
          ...{ expiry: 'clock', skewMs: 1_000 },
        });
        stores.push(store);
        return store;
      },
    });
  });
}
