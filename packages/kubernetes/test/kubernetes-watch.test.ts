import { startProxy } from '@locks/test-servers';
import { expect, it, vi } from 'vitest';
import { describeOnKubernetes, put, within, writeOf } from './store-on-server.ts';

let last = 0;
const freshKey = (): string => `locks/lock/key-${(last += 1)}`;
const heard = async (changed: ReturnType<typeof vi.fn>, times = 1): Promise<void> => {
  await vi.waitFor(() => expect(changed.mock.calls.length).toBeGreaterThanOrEqual(times), {
    timeout: 10_000,
    interval: 5,
  });
};

describeOnKubernetes('the watch of Leases', ['nobody'], (on) => {
  it('tells of what is made, written and deleted, and of nothing else', async () => {
    const [store, other] = [await on.open(), await on.open()];
    const [key, beside] = [freshKey(), freshKey()];
    const [changed, changedBeside] = [vi.fn<() => void>(), vi.fn<() => void>()];
    const stop = store.watch(key, changed);
    store.watch(beside, changedBeside);
    // Both are told when the watch begins.
    await heard(changedBeside);
    changed.mockClear();
    let version = await put(other, key, 'one');
    await heard(changed);
    version = await put(other, key, 'two', version);
    await heard(changed, 2);
    version = await put(other, key, undefined, version);
    await heard(changed, 3);
    await put(other, 'locks/client/1', 'a heartbeat');
    stop();
    await put(other, key, 'three');
    // Changes are told in their order.
    await put(other, beside, 'last');
    await heard(changedBeside, 2);
    expect(changed).toHaveBeenCalledTimes(3);
    expect(changedBeside).toHaveBeenCalledTimes(2);
  });

  it('begins again after a connection was cut, and tells of what it missed', async () => {
    await using proxy = await startProxy(on.server, { protocol: 'raw' });
    const store = await on.open({ at: { url: `https://${proxy.host}:${proxy.port}` } });
    const other = await on.open();
    const [key, silent] = [freshKey(), freshKey()];
    const [changed, never] = [vi.fn<() => void>(), vi.fn<() => void>()];
    store.watch(key, changed);
    store.watch(silent, never);
    await heard(changed);
    await heard(never);
    const version = await put(other, key, 'one');
    await heard(changed, 2);
    proxy.refuse();
    proxy.cut();
    await put(other, key, 'two', version);
    await proxy.heal();
    await heard(changed, 3);
    // It went on where it broke off: nothing may have been missed.
    expect(never).toHaveBeenCalledTimes(1);
  });

  it('begins anew where the server has forgotten what came since', async () => {
    const [store, other] = [await on.open(), await on.open()];
    const key = freshKey();
    const changed = vi.fn<() => void>();
    store.watch(key, changed);
    await heard(changed);
    await on.server.kill();
    await on.server.restart();
    await put(other, key, 'one');
    await heard(changed, 2);
  });

  it('is no need: it tells nothing without the right to watch', async () => {
    const store = await on.open({ user: 'nobody' });
    const changed = vi.fn<() => void>();
    const stop = store.watch(freshKey(), changed);
    await expect(store.write(writeOf(freshKey(), 'x'), within)).rejects.toThrow(/Role/);
    stop();
    expect(changed).not.toHaveBeenCalled();
  });
});
