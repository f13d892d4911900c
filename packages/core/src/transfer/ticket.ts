import {
  matching,
  optional,
  type OptionTable,
  readOptions,
  text,
  wholeNumber,
} from '../backend/read-options.ts';
import { describe, invalidArgument } from '../errors.ts';
import { checkName } from '../names.ts';
import { MAX_TTL_MS } from '../options.ts';

/**
 * A lease on its way to another process, as plain JSON. Whoever has the ticket can take the lease once, with access to the store:
 * keep it as secret as the lock matters. It holds no password and no address.
 */
export interface TransferTicket {
  /** The version of this format. */
  readonly version: 1;
  readonly name: string;
  /** The id under which the store keeps the lease: that of the acquisition that held it, and a secret that nothing else shows. */
  readonly acquisitionId: string;
  /** The fencing token of the lease on its way, as a decimal string; the lease that adopts it has a higher one. */
  readonly fencingToken?: string | undefined;
  /** How long the store keeps the lease after the transfer, in milliseconds. */
  readonly ttlMs: number;
  /**
   * The end of the lease if nobody adopts it, by the clock of the machine that transferred it, in milliseconds since 1970. It counts where
   * the backend declares how holds expire, since its clients have no single clock; elsewhere the clock of the store does.
   */
  readonly endsAt?: number | undefined;
}

const TICKET_TABLE = {
  version: matching('1, as this version of core writes it', (value): value is 1 => value === 1),
  name: checkName,
  acquisitionId: text('an acquisition id', /^[\w-]{1,64}$/),
  fencingToken: optional(text('a decimal string', /^\d{1,78}$/)),
  ttlMs: wholeNumber(1, MAX_TTL_MS, 'milliseconds'),
  endsAt: optional(wholeNumber(0, Number.MAX_SAFE_INTEGER, 'milliseconds')),
} satisfies OptionTable<TransferTicket>;

/** @throws LockError `LOCK_INVALID_ARGUMENT` */
export function readTicket(ticket: unknown): TransferTicket {
  if (typeof ticket !== 'object' || ticket === null) {
    const hint = typeof ticket === 'string' ? ' Give the parsed object: JSON.parse(text).' : '';
    const what = typeof ticket === 'string' ? 'a string' : describe(ticket);
    throw invalidArgument(`adopt(): the ticket must be what transfer() gave, not ${what}.${hint}`);
  }
  return readOptions('adopt(): the ticket', ticket, TICKET_TABLE);
}
