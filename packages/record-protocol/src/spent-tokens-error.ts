/** The record of a resource has so high a fencing token that none above it can be told from its neighbours. */
export class SpentTokensError extends Error {
  override readonly name = 'SpentTokensError';
  readonly code = 'TOKENS_SPENT';

  constructor(token: number) {
    super(
      `no fencing token is left above ${token}, the last one of the record, which something else than this package has written: no grant ` +
        'could be told from the one before. Delete the record while nobody holds the lock, and begin anew where the tokens are compared',
    );
  }
}
