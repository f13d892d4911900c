import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { loadAllYaml } from '@kubernetes/client-node';
import { LockError } from '@locks/core';
import { createLocks } from '@locks/core';
import { expect, it, vi } from 'vitest';
import { kubernetesBackend } from '../src/index.ts';
import { kubeConfig } from './kube-config.ts';
import { describeOnKubernetes, put, valueOf, within, writeOf } from './store-on-server.ts';

const PAGE = fileURLToPath(new URL('../../../docs/backends/kubernetes.md', import.meta.url));

interface Made {
  readonly kind: 'Role' | 'RoleBinding';
  subjects?: unknown;
}

/** The Role and the RoleBinding of the page. */
function rightsOnThePage(): Made[] {
  const [, yaml = ''] = /```yaml\n(.*?)```/s.exec(readFileSync(PAGE, 'utf8')) ?? [];
  return loadAllYaml(yaml) as Made[];
}

describeOnKubernetes('the rights of a user', ['app', 'stranger', 'reader'], (on) => {
  const inNamespace = (namespace: string, kind: string): string =>
    `/apis/rbac.authorization.k8s.io/v1/namespaces/${namespace}/${kind.toLowerCase()}s`;

  it('are enough with the role of the page', async () => {
    const [role, binding] = rightsOnThePage();
    for (const made of [role, binding]) {
      if (made?.kind === 'RoleBinding') made.subjects = [{ kind: 'User', name: 'app' }];
      await on.server.ask('POST', inNamespace('default', made?.kind ?? ''), made);
    }
    const store = await on.open({ user: 'app' });
    const changed = vi.fn<() => void>();
    store.watch('locks/lock/mine', changed);
    let version = await put(store, 'locks/lock/mine', 'one');
    version = await put(store, 'locks/lock/mine', 'two', version);
    const listed: string[] = [];
    for await (const { value } of store.list('locks/lock/', within))
      listed.push(Buffer.from(value).toString());
    expect(listed).toEqual(['two']);
    expect(await valueOf(store, 'locks/lock/mine')).toBe('two');
    await vi.waitFor(() => expect(changed).toHaveBeenCalled(), { timeout: 10_000 });
    await put(store, 'locks/lock/mine', undefined, version);
  });

  it('are named where they are missing, at once', async () => {
    const config = kubeConfig(await on.server.access('stranger'));
    await using locks = createLocks(kubernetesBackend(config));
    const failure = await locks
      .lock('a')
      .acquire({ waitMs: 60_000 })
      .catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(LockError);
    expect(failure).toMatchObject({ code: 'LOCK_BACKEND' });
    expect(String((failure as LockError).cause)).toMatch(
      /Role in the namespace default.*coordination\.k8s\.io.*leases.*get, list, watch, create, update, delete.*403.*"stranger"/s,
    );
  });

  it('to a namespace that does not exist are not enough either', async () => {
    const store = await on.open({ namespace: 'nowhere' });
    expect((await store.read(['locks/lock/a'], within)).records).toEqual([undefined]);
    const failure = await store.write(writeOf('locks/lock/a', 'x'), within).catch((error: unknown) => error);
    expect(String(failure)).toMatch(/no namespace nowhere/);
    expect(store.isRetryable(failure)).toBe(false);
  });

  it('are none with credentials that nobody knows', async () => {
    const store = await on.open({ at: { token: 'of-nobody' } });
    const failure = await store.read(['locks/lock/a'], within).catch((error: unknown) => error);
    expect(String(failure)).toMatch(/credentials.*401/);
    expect(store.isRetryable(failure)).toBe(false);
  });

  it('locks without the right to watch', async () => {
    await on.server.ask('POST', inNamespace('default', 'Role'), {
      metadata: { name: 'without-watch' },
      rules: [
        { apiGroups: ['coordination.k8s.io'], resources: ['leases'], verbs: ['get', 'create', 'update'] },
      ],
    });
    await on.server.ask('POST', inNamespace('default', 'RoleBinding'), {
      metadata: { name: 'without-watch' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'without-watch' },
      subjects: [{ kind: 'User', name: 'reader' }],
    });
    const access = await on.server.access('reader');
    const open = () => createLocks(kubernetesBackend(kubeConfig(access)));
    await using one = open();
    await using two = open();
    const lease = await one.lock('b').acquire();
    const waiting = two.lock('b').run(() => 'mine', { waitMs: 20_000 });
    await vi.waitFor(async () => expect((await one.inspect('b')).waiters).toHaveLength(1), {
      timeout: 10_000,
    });
    await lease.release();
    expect(await waiting).toBe('mine');
  });
});
