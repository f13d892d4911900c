/** What a lock key of ours holds: `<id>|<flag>|<token>|<label>`. */
export interface LockValue {
  readonly id: string;
  readonly token: bigint;
  readonly label: string;
}

/** `undefined`: written by somebody else. */
export function parseValue(value: string): LockValue | undefined {
  const match = /^([\w-]+)\|[+-]\|(\d+)\|([^]*)$/.exec(value);
  return match
    ? { id: match[1] as string, token: BigInt(match[2] as string), label: match[3] as string }
    : undefined;
}

/** What a queue holds for each waiter: `<id>|<px>|<notify>|<label>`. */
export function formatMember(id: string, px: number, notify: string, label: string): string {
  return `${id}|${px}|${notify}|${label}`;
}

export function parseMember(member: string): { readonly id: string; readonly label: string } {
  const [id = '', , , ...label] = member.split('|');
  return { id, label: label.join('|') };
}

/** What is published to a process whose waiter was handed a lock: `granted <id> <token> <lock key>`. */
export interface GrantedMessage {
  readonly id: string;
  readonly token: number;
  readonly lock: string;
}

export function parseMessage(text: string): GrantedMessage | undefined {
  const match = /^granted ([\w-]+) (\d+) ([^]+)$/.exec(text);
  return match ? { id: match[1] as string, token: Number(match[2]), lock: match[3] as string } : undefined;
}
