import type { Holder, ResourceState, Waiter } from '@locks/core';
import type { InspectOptions } from '@locks/core/backend';
import { modeOf, type LockNode } from './node-names.ts';
import { decodeNodeData } from './lock-node-data.ts';
import type { ZookeeperSession } from './zookeeper-session.ts';

/** The holders and waiters of a resource, up to date whichever server answers. */
export async function stateOf(
  session: ZookeeperSession,
  resource: string,
  parent: string,
  options?: InspectOptions,
): Promise<ResourceState> {
  const [, queue] = await Promise.all([session.barrier(), session.queue(parent)]);
  const { holders } = queue;
  // Each waiter costs a request.
  const waiters = options?.waiters === false ? [] : queue.waiters;
  const [held, waiting] = await Promise.all([
    Promise.all(holders.map((node) => holderAt(session, parent, node))),
    Promise.all(waiters.map((node) => waiterAt(session, parent, node))),
  ]);
  return {
    name: resource,
    holders: held.filter((holder) => holder !== undefined),
    waiters: waiting.filter((waiter) => waiter !== undefined),
  };
}

/** Reads a holder from its node; `undefined` if the node is gone. */
export async function holderAt(
  session: ZookeeperSession,
  parent: string,
  node: LockNode,
): Promise<Holder | undefined> {
  const read = await readAcquisition(session, parent, node);
  return read && { ...read.named, fencingToken: read.token, heldForMs: read.ageMs };
}

async function waiterAt(
  session: ZookeeperSession,
  parent: string,
  node: LockNode,
): Promise<Waiter | undefined> {
  const read = await readAcquisition(session, parent, node);
  return read && { ...read.named, waitingForMs: read.ageMs };
}

async function readAcquisition(session: ZookeeperSession, parent: string, node: LockNode) {
  const content = await session.read(`${parent}/${node.name}`);
  if (content === undefined) return undefined;
  const { label, token } = decodeNodeData(content);
  const { acquisitionId } = node;
  return {
    named: { acquisitionId, mode: modeOf(node), ...(label !== undefined && { label }) },
    token,
    // The age by the clocks of client and server: for operators only.
    ageMs: Math.max(0, Date.now() - content.createdAt),
  };
}
