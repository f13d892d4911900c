import type { LockBackend } from '../src/backend/types.ts';
import type { ReplyLength } from './proxy/network-faults.ts';
import { type Proxy, startProxy } from './proxy/proxy.ts';
import { untilAnswered, grab, openCall } from './raw.ts';
import type { Client, CaseContext } from './case-context.ts';

/** A client of the store behind proxies of its own: their faults affect no other client. */
export interface ProxiedClient extends Client {
  readonly proxies: readonly Proxy[];
  /** Ends all faults of the proxies. */
  heal(): Promise<void>;
}

/** Starts such a client and makes its first call, so that its lasting connections are open. Needs `wire`. */
export async function behindProxies(context: CaseContext, repeats?: ReplyLength): Promise<ProxiedClient> {
  const { wire } = context.harness.faults ?? {};
  if (wire === undefined) throw new Error('the harness has no faults.wire');
  const proxies = await Promise.all(wire.servers().map((server) => startProxy(server)));
  if (repeats !== undefined) for (const proxy of proxies) proxy.repeatReplies(repeats);
  const backend = await wire.createBackend(proxies.map(({ host, port }) => ({ host, port })));
  const locks = context.createLocks(backend);
  const heal = async (): Promise<void> => {
    await Promise.all(proxies.map((proxy) => proxy.heal()));
  };
  context.onEnd(async () => {
    await heal();
    await locks.close();
    await Promise.all(proxies.map((proxy) => proxy.stop()));
  });
  await opened(context, backend);
  return { backend, locks, proxies, heal };
}

async function opened(context: CaseContext, backend: LockBackend): Promise<void> {
  const name = context.name('first');
  const grant = await untilAnswered(context, backend, () => grab(backend, name, context.inSteps(60_000)));
  await untilAnswered(context, backend, () => backend.release(grant, openCall));
}
