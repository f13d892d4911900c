import { startEtcd } from '../etcd/start-etcd.ts';
import { startServer } from '../managed-server.ts';
import { KubernetesApiServer } from './api-server.ts';

export interface KubernetesOptions {
  /** Names of users who may do nothing until a role is bound to them. */
  readonly users?: readonly string[];
  /** More arguments of the API server. */
  readonly args?: readonly string[];
}

/** Starts an API server and its etcd; ready when it serves. It must have been built: `node test-servers/install.mjs kubernetes`. */
export async function startKubernetes(options: KubernetesOptions = {}): Promise<KubernetesApiServer> {
  const { users = [], args = [] } = options;
  const etcd = await startEtcd();
  try {
    return await startServer(
      { label: 'kubernetes' },
      (location) => new KubernetesApiServer(location, etcd, users, args),
    );
  } catch (error) {
    await etcd.stop();
    throw error;
  }
}
