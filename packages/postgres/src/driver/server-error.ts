/** The SQL state that the server gave, or the code of an error of Node.js; empty if there is none. */
export function codeOf(error: unknown): string {
  const { code } = (error ?? {}) as { code?: unknown };
  return typeof code === 'string' ? code : '';
}

/** The SQL state of a write where a transaction is read-only. */
const READ_ONLY = '25006';

/**
 * Whether the server refused one statement and the connection stays usable. One that is read-only is not: its server became a standby, or
 * the application left it so, and another connection may reach the primary.
 */
export function isRefusal(error: unknown): boolean {
  return (error as { severity?: unknown }).severity === 'ERROR' && codeOf(error) !== READ_ONLY;
}

/**
 * Whether a prepared statement exists that this session did not prepare, or the other way round: a pooler between us and
 * the server lends sessions to several clients.
 */
export function isStrangeStatement(error: unknown): boolean {
  return codeOf(error) === '26000' || codeOf(error) === '42P05';
}

/** What was thrown, as an error. */
export function asError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown));
}
