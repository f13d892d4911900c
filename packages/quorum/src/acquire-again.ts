import type { Attempt, Call, LockBackend, RenewItem } from '@locks/core/backend';
import type { BackgroundCalls } from './background-calls.ts';
import { type QuorumGrant, validated } from './quorum-grants.ts';

/**
 * Acquires a lease again on a node that does not hold it: one that came back empty, or was away when the others granted. Nobody
 * waits for the answer, and the node does not count yet.
 */
export function acquireAgain(
  { grant, ttlMs }: RenewItem,
  index: number,
  node: LockBackend,
  background: BackgroundCalls,
  caller: Call,
): void {
  const { nodeGrants } = grant as Partial<QuorumGrant>;
  if (nodeGrants === undefined || nodeGrants.over || nodeGrants.again.get(index) === 'asked') return;
  nodeGrants.again.set(index, 'asked');
  // A release abandons on this node from now on, whatever becomes of this attempt.
  nodeGrants.grants[index] = undefined;
  // Never a steal, also where this lease was acquired by one: a new holder of this node keeps it.
  const { steal: _, ...request } = { ...grant.request, ttlMs };
  const settle = (answer: Attempt | undefined): void => {
    nodeGrants.again.delete(index);
    // The release may have overtaken this attempt on its way (docs/spec.md §2.2).
    if (nodeGrants.over) {
      if (answer === undefined || answer.status === 'granted') void background.abandon(node, request, caller);
    } else if (answer?.status === 'granted') {
      nodeGrants.again.set(index, 'on-trial');
      nodeGrants.grants[index] = answer.grant;
    }
  };
  const ask = async (call: Call) => validated(await node.attempt(request, false, call), request, node, call);
  void background.ask(node, caller, ask, settle);
}
