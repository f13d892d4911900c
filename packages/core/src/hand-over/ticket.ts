import {
  matching,
  optional,
  type OptionTable,
  readOptions,
  text,
  wholeNumber,
} from '../backend/read-options.ts';
import { checkName } from '../names.ts';
import { MAX_TTL_MS } from '../options.ts';

/**
 * A lease on its way to another process, as plain JSON. Whoever has the ticket can take the lease once, with access to the store;
 * it holds no password and no address.
 */
export interface HandOverTicket {
  /** The version of this format. */
  readonly version: 1;
  /** The name of the lock. */
  readonly name: string;
  /** The acquisition that held the lease. */
  readonly acquisitionId: string;
  /** The fencing token of that acquisition, as a decimal string; the lease that adopts it has a higher one. */
  readonly fencingToken?: string | undefined;
  /** How long the store keeps the lease after the hand-over, in milliseconds. */
  readonly ttlMs: number;
}

const TICKET_TABLE = {
  version: matching('1, as this version of core writes it', (value): value is 1 => value === 1),
  name: checkName,
  acquisitionId: text('an acquisition id', /^[\w-]{1,64}$/),
  fencingToken: optional(text('a decimal string', /^\d{1,78}$/)),
  ttlMs: wholeNumber(1, MAX_TTL_MS, 'milliseconds'),
} satisfies OptionTable<HandOverTicket>;

/** @throws LockError `LOCK_INVALID_ARGUMENT` */
export function readTicket(ticket: unknown): HandOverTicket {
  return readOptions('adopt(): the ticket', ticket ?? null, TICKET_TABLE);
}
