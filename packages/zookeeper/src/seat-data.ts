import type { NodeContent } from './client-port.ts';

/** What an acquisition's node holds: JSON, for operators and for those who inspect. */
export interface SeatData {
  readonly label?: string;
  /** Of a hold that was downgraded: the token that it was granted with, since its node is a new one. */
  readonly token?: bigint;
}

export function encodeSeat({ label, token }: SeatData): Buffer {
  return Buffer.from(JSON.stringify({ label, token: token === undefined ? undefined : String(token) }));
}

export function decodeSeat({ data, czxid }: NodeContent): {
  readonly label?: string;
  readonly token: bigint;
} {
  let said: { label?: unknown; token?: unknown } = {};
  try {
    said = (JSON.parse(data.toString()) ?? {}) as typeof said;
  } catch {
    // Somebody else wrote it.
  }
  const token = typeof said.token === 'string' && /^\d+$/.test(said.token) ? BigInt(said.token) : czxid;
  return typeof said.label === 'string' ? { label: said.label, token } : { token };
}
