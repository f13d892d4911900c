import { hasCode } from './client-port.ts';
import type { ZookeeperSession } from './zookeeper-session.ts';

/** A shared node that is to take the place of an exclusive one. */
export interface Replacement {
  readonly exclusive: string;
  readonly shared: string;
  readonly data: Buffer;
  /** Whether an earlier attempt may have deleted the exclusive node when the shared one was there. */
  readonly mayBeDone: boolean;
  /** Called before a request after which the shared node alone is the hold, although the answer may be lost. */
  readonly isDone: () => void;
}

/**
 * Replaces a node, so that the resource is never free in between (docs/spec.md §15.4); `false` if somebody else deleted the exclusive one
 * before: the hold was lost, and a shared node that was made nevertheless is not the hold.
 */
export async function replaceLockNode(
  session: ZookeeperSession,
  { exclusive, shared, data, mayBeDone, isDone }: Replacement,
): Promise<boolean> {
  const { port } = session;
  if (port.replace !== undefined) {
    isDone();
    const sentAt = session.now();
    const [done] = await Promise.allSettled([
      session.ask(async () => await port.replace?.(exclusive, shared, data)),
    ]);
    const refusal: unknown = done.status === 'rejected' ? done.reason : undefined;
    if (done.status === 'rejected' && !hasCode(refusal, 'NODE_EXISTS', 'NO_NODE')) throw done.reason;
    session.proven(sentAt);
    return !hasCode(refusal, 'NO_NODE');
  }
  // The shared node is the hold only if the exclusive one is seen beside it, and that one is deleted only then: if it is missing before,
  // it was somebody else who deleted it, also where answers are lost.
  const [made, held] = await Promise.allSettled([
    session.ask(() => port.create(shared, data, 'ephemeral')),
    session.read(exclusive),
  ]);
  const existed = made.status === 'rejected' && hasCode(made.reason, 'NODE_EXISTS');
  if (made.status === 'rejected' && !existed) throw made.reason;
  if (held.status === 'rejected') throw held.reason;
  if (held.value === undefined) return existed && mayBeDone;
  isDone();
  return await session.remove(exclusive);
}
