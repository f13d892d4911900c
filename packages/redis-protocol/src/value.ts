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

/** What a queue holds for each waiter: `<id>|<px>|<notify>|<label>`; for other modes than exclusive `<px>:<weight>`. */
export function formatMember(id: string, px: number, weight: string, notify: string, label: string): string {
  return `${id}|${px}${weight && `:${weight}`}|${notify}|${label}`;
}

interface Member {
  readonly id: string;
  /** `undefined`: exclusive. */
  readonly weight: number | undefined;
  readonly label: string;
}

export function parseMember(member: string): Member {
  const [id = '', time = '', , ...label] = member.split('|');
  const weight = time.split(':')[1];
  return { id, weight: weight === undefined ? undefined : Number(weight), label: label.join('|') };
}

/** What the lock key holds while readers or permits do: `*<limit>|<used>|<flag>|<first>|<last>`. Gives the limit, 0 for readers. */
export function parseMark(value: string): number | undefined {
  const match = /^\*(\d+)\|\d+\|[+-]\|\d+\|\d+$/.exec(value);
  return match ? Number(match[1]) : undefined;
}

/** One of several holds. */
export interface Share {
  readonly endsAt: number;
  readonly token: bigint;
  readonly weight: number;
  readonly label: string;
}

/** What the holders key has for each id: `<from>|<ttl>|<token>|<weight>|<label>`, times in server ms. */
export function parseShare(share: string): Share | undefined {
  const match = /^(\d+)\|(\d+)\|(\d+)\|(\d+)\|([^]*)$/.exec(share);
  if (match === null) return undefined;
  const [, from, ttl, token, weight, label] = match as unknown as [
    string,
    string,
    string,
    string,
    string,
    string,
  ];
  return { endsAt: Number(from) + Number(ttl), token: BigInt(token), weight: Number(weight), label };
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
