import type { NodeContent } from './client-port.ts';

/** The data of an acquisition's node: JSON, for operators and for `inspect`. */
export interface LockNodeData {
  readonly label: string | undefined;
  /** The token of a hold that was downgraded, since its node is a new one; `undefined`: the id of the transaction that creates the node. */
  readonly token: bigint | undefined;
}

export function encodeNodeData({ label, token }: LockNodeData): Buffer {
  return Buffer.from(JSON.stringify({ label, token: token === undefined ? undefined : String(token) }));
}

export function decodeNodeData({ data, czxid }: NodeContent): {
  readonly label?: string;
  readonly token: bigint;
} {
  let said: { label?: unknown; token?: unknown } = {};
  try {
    said = (JSON.parse(data.toString()) ?? {}) as typeof said;
  } catch {
    // Somebody else wrote the data.
  }
  const token = typeof said.token === 'string' && /^\d+$/.test(said.token) ? BigInt(said.token) : czxid;
  return typeof said.label === 'string' ? { label: said.label, token } : { token };
}
