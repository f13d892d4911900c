import { LockError } from '@locks/core';

/** Redis answered with what the command never gives. It is not repeated: the same client would get the same reply. */
export class UnexpectedReplyError extends Error {
  override readonly name = 'UnexpectedReplyError';

  constructor(reply: unknown) {
    super(
      isQueued(reply)
        ? 'the client has an open MULTI, in which Redis only queued the command: end it with EXEC or DISCARD, and give locks a ' +
            'client of their own, for example client.duplicate()'
        : `Redis gave a reply of an unknown form, ${shown(reply)}`,
    );
  }
}

/** Whether a reply is the one that every command gets within `MULTI`. */
export function isQueued(reply: unknown): boolean {
  return reply === 'QUEUED';
}

function shown(reply: unknown): string {
  return (JSON.stringify(reply) ?? String(reply)).slice(0, 80);
}

/** The values of a reply that is a word, or a list that begins with one. */
export function partsOf(reply: unknown): readonly unknown[] {
  return Array.isArray(reply) ? reply : [reply];
}

/**
 * Reads a reply that is a list.
 *
 * @param length - the fewest values that it has
 * @throws UnexpectedReplyError
 */
export function listIn(reply: unknown, length: number): readonly unknown[] {
  if (!Array.isArray(reply) || reply.length < length) throw new UnexpectedReplyError(reply);
  return reply as readonly unknown[];
}

/**
 * Reads a reply that is a whole number. Clients give it as a number, or as its decimal digits.
 *
 * @throws UnexpectedReplyError
 */
export function wholeIn(reply: unknown): number {
  const number =
    typeof reply === 'number' || (typeof reply === 'string' && reply !== '') ? Number(reply) : NaN;
  if (!Number.isInteger(number)) throw new UnexpectedReplyError(reply);
  return number;
}

/**
 * Reads a reply that is a token.
 *
 * @throws UnexpectedReplyError
 */
export function tokenIn(reply: unknown): bigint {
  // Digits are read as they are: a token that something else has set may be above 2 ** 53.
  return typeof reply === 'string' && /^\d+$/.test(reply) ? BigInt(reply) : BigInt(wholeIn(reply));
}

/**
 * Refuses the reply of a command within `MULTI`.
 *
 * @throws UnexpectedReplyError
 */
export function refuseQueued(reply: unknown): void {
  if (isQueued(reply)) throw new UnexpectedReplyError(reply);
}

/** Runs work that no lock stands behind: an unexpected reply is a `LOCK_BACKEND` there too, and names the function. */
export async function namingUnexpectedReply<T>(
  what: string,
  backend: string,
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof UnexpectedReplyError)) throw error;
    throw new LockError('LOCK_BACKEND', `${what}: ${error.message}`, { backend, cause: error });
  }
}
