import { createLocks, type LockManager, type LockOptions } from '@locks/core';
import type { Address } from '@locks/core/conformance/proxy';
import { type EtcdBackendOptions, etcdBackend } from '@locks/etcd';
import {
  type EtcdCluster,
  type EtcdClusterOptions,
  type EtcdServer,
  startEtcd,
  startEtcdCluster,
} from '@locks/test-servers';
import { Etcd3 } from 'etcd3';
import { FaultLab } from '../src/fault-lab/fault-lab.ts';

export interface LabOptions extends LockOptions {
  readonly backend?: EtcdBackendOptions;
}

export default class Lab extends FaultLab<LabOptions> {
  readonly module = import.meta.url;

  async server(): Promise<EtcdServer> {
    return this.use(await startEtcd());
  }

  async cluster(options?: EtcdClusterOptions): Promise<EtcdCluster> {
    return this.use(await startEtcdCluster(options));
  }

  locks(at: Address | string | string[], { backend, ...options }: LabOptions = {}): LockManager {
    const hosts = typeof at === 'object' && 'port' in at ? `http://${at.host}:${at.port}` : at;
    return this.use(createLocks(etcdBackend({ hosts }, backend), options));
  }

  /** An administrator's client. */
  admin(hosts: string | string[]): Etcd3 {
    const admin = new Etcd3({ hosts });
    this.defer(() => admin.close());
    return admin;
  }
}

/** The one key of a lock that is held and not waited for. */
export async function keyOf(admin: Etcd3, name: string): Promise<{ key: string; lease: string }> {
  const { kvs } = await admin.getAll().prefix(`locks//${name}/`).exec();
  const [kv] = kvs;
  if (kv === undefined) throw new Error(`Nothing holds ${name}.`);
  return { key: kv.key.toString(), lease: kv.lease };
}
