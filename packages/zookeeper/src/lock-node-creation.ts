import type { AcquireRequest } from '@locks/core/backend';
import type { ChildList, NodeContent } from './client-port.ts';
import { encodeNodeData } from './lock-node-data.ts';
import { lockNodePrefix } from './node-names.ts';
import type { ZookeeperSession } from './zookeeper-session.ts';

/**
 * Creates the node of an acquisition. The requests are sent together and answered in order: one round trip creates the parent if need be,
 * reads it, creates the node, and then lists the queue. Never rejects: what follows depends on each of the answers.
 */
export function createLockNode(
  session: ZookeeperSession,
  parent: string,
  { mode, acquisitionId, label }: AcquireRequest,
  isParentMade: boolean,
) {
  const { port } = session;
  const prefix = `${parent}/${lockNodePrefix(mode, acquisitionId)}`;
  const data = encodeNodeData({ label, token: undefined });
  return Promise.allSettled([
    isParentMade ? undefined : session.ask(() => port.create(parent, Buffer.alloc(0), 'persistent')),
    session.ask(() => port.read(parent, undefined)),
    session.ask(() => port.create(prefix, data, 'ephemeral-sequential')),
    session.queueOfTurn(parent),
  ]);
}

/**
 * The token of a node that was created between two reads of its parent. If the children changed only once, the last
 * change is that node, and no further request is needed. Otherwise the node must be read.
 */
export function tokenBetween(before: NodeContent, after: ChildList): bigint | undefined {
  return after.cversion === ((before.cversion + 1) | 0) ? after.pzxid : undefined;
}
